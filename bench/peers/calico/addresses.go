package main

import (
	"fmt"
	"strconv"
	"strings"

	api "github.com/projectcalico/api/pkg/apis/projectcalico/v3"

	"github.com/projectcalico/calico/libcalico-go/lib/ipam"
	cnet "github.com/projectcalico/calico/libcalico-go/lib/net"
)

// What AutoAssign says of one family.
type assigned struct {
	Addresses []string `json:"addresses"` // with the length of the block
	Wanted    int      `json:"wanted"`
	Messages  []string `json:"messages,omitempty"`
}

func assignedOf(a *ipam.IPAMAssignments) *assigned {
	if a == nil {
		return nil
	}
	out := assigned{Addresses: []string{}, Wanted: a.NumRequested, Messages: a.Msgs}
	for _, ip := range a.IPs {
		length, _ := ip.Mask.Size()
		out.Addresses = append(out.Addresses, fmt.Sprintf("%s/%d", ip.IP, length))
	}
	return &out
}

func networksOf(networks []cnet.IPNet) []string {
	out := []string{}
	for _, network := range networks {
		out = append(out, network.String())
	}
	return out
}

func addressesOf(addresses []cnet.IP) []string {
	out := []string{}
	for _, address := range addresses {
		out = append(out, address.String())
	}
	return out
}

func parseAddress(text string) (*cnet.IP, error) {
	address := cnet.ParseIP(text)
	if address == nil {
		return nil, usageError{text + " is no address"}
	}
	return address, nil
}

func autoAssign(p *peer, args []string) (any, error) {
	flags := newFlags()
	var pools4, pools6, attrs texts
	var wanted ipam.AutoAssignArgs
	flags.StringVar(&wanted.Hostname, "host", "", "")
	handle := flags.String("handle", "", "")
	flags.IntVar(&wanted.Num4, "num4", 0, "")
	flags.IntVar(&wanted.Num6, "num6", 0, "")
	flags.IntVar(&wanted.MaxBlocksPerHost, "max-blocks", 0, "")
	use := flags.String("use", string(api.IPPoolAllowedUseWorkload), "")
	flags.Var(&pools4, "pool4", "")
	flags.Var(&pools6, "pool6", "")
	flags.Var(&attrs, "attr", "")
	_, err := parse(flags, args, 0)
	if err != nil {
		return nil, err
	}
	if err = required(map[string]string{"host": wanted.Hostname, "handle": *handle}); err != nil {
		return nil, err
	}
	wanted.HandleID = handle
	wanted.IntendedUse = api.IPPoolAllowedUse(*use)
	if wanted.Attrs, err = attrs.pairs(); err != nil {
		return nil, err
	}
	if wanted.IPv4Pools, err = pools4.networks(); err != nil {
		return nil, err
	}
	if wanted.IPv6Pools, err = pools6.networks(); err != nil {
		return nil, err
	}
	v4, v6, err := p.client.IPAM().AutoAssign(p.ctx, wanted)
	return map[string]*assigned{"v4": assignedOf(v4), "v6": assignedOf(v6)}, err
}

func assignIP(p *peer, args []string) (any, error) {
	flags := newFlags()
	var attrs texts
	var wanted ipam.AssignIPArgs
	flags.StringVar(&wanted.Hostname, "host", "", "")
	handle := flags.String("handle", "", "")
	address := flags.String("ip", "", "")
	flags.Var(&attrs, "attr", "")
	_, err := parse(flags, args, 0)
	if err != nil {
		return nil, err
	}
	if err = required(map[string]string{"host": wanted.Hostname, "handle": *handle}); err != nil {
		return nil, err
	}
	ip, err := parseAddress(*address)
	if err != nil {
		return nil, err
	}
	wanted.IP = *ip
	wanted.HandleID = handle
	if wanted.Attrs, err = attrs.pairs(); err != nil {
		return nil, err
	}
	return map[string]string{"address": ip.String()}, p.client.IPAM().AssignIP(p.ctx, wanted)
}

func releaseIPs(p *peer, args []string) (any, error) {
	words, err := parse(newFlags(), args, -1)
	if err != nil {
		return nil, err
	}
	var wanted []ipam.ReleaseOptions
	for _, text := range words {
		parts := strings.Split(text, ",")
		one := ipam.ReleaseOptions{Address: parts[0]}
		if len(parts) > 1 {
			one.Handle = parts[1]
		}
		if len(parts) > 2 {
			number, err := strconv.ParseUint(parts[2], 10, 64)
			if err != nil {
				return nil, usageError{err.Error()}
			}
			one.SequenceNumber = &number
		}
		wanted = append(wanted, one)
	}
	unallocated, err := p.client.IPAM().ReleaseIPs(p.ctx, wanted...)
	return map[string][]string{"unallocated": addressesOf(unallocated)}, err
}

func releaseByHandle(p *peer, args []string) (any, error) {
	handle, err := word(args)
	if err != nil {
		return nil, err
	}
	return map[string]string{"handle": handle}, p.client.IPAM().ReleaseByHandle(p.ctx, handle)
}

func ipsByHandle(p *peer, args []string) (any, error) {
	handle, err := word(args)
	if err != nil {
		return nil, err
	}
	addresses, err := p.client.IPAM().IPsByHandle(p.ctx, handle)
	return map[string][]string{"addresses": addressesOf(addresses)}, err
}

func attributes(p *peer, args []string) (any, error) {
	text, err := word(args)
	if err != nil {
		return nil, err
	}
	address, err := parseAddress(text)
	if err != nil {
		return nil, err
	}
	attrs, handle, err := p.client.IPAM().GetAssignmentAttributes(p.ctx, *address)
	return map[string]any{"attributes": attrs, "handle": handle}, err
}

// --host and --cidr, for the commands on affinities.
func hostAndNetwork(args []string) (host string, network *cnet.IPNet, mustBeEmpty bool, err error) {
	flags := newFlags()
	flags.StringVar(&host, "host", "", "")
	cidr := flags.String("cidr", "", "")
	flags.BoolVar(&mustBeEmpty, "must-be-empty", false, "")
	if _, err = parse(flags, args, 0); err != nil {
		return
	}
	if err = required(map[string]string{"host": host}); err != nil || *cidr == "" {
		return
	}
	if _, network, err = cnet.ParseCIDR(*cidr); err != nil {
		err = usageError{err.Error()}
	}
	return
}

func claimAffinity(p *peer, args []string) (any, error) {
	host, network, _, err := hostAndNetwork(args)
	if err != nil {
		return nil, err
	}
	if network == nil {
		return nil, usageError{"--cidr is missing"}
	}
	claimed, failed, err := p.client.IPAM().ClaimAffinity(p.ctx, *network, host)
	return map[string][]string{"claimed": networksOf(claimed), "others": networksOf(failed)}, err
}

func releaseAffinity(p *peer, args []string) (any, error) {
	host, network, mustBeEmpty, err := hostAndNetwork(args)
	if err != nil {
		return nil, err
	}
	if network == nil {
		return nil, usageError{"--cidr is missing"}
	}
	return map[string]string{"host": host}, p.client.IPAM().ReleaseAffinity(p.ctx, *network, host, mustBeEmpty)
}

func releaseHostAffinities(p *peer, args []string) (any, error) {
	host, network, mustBeEmpty, err := hostAndNetwork(args)
	if err != nil {
		return nil, err
	}
	if network != nil {
		return nil, usageError{"--cidr has no place here"}
	}
	return map[string]string{"host": host}, p.client.IPAM().ReleaseHostAffinities(p.ctx, host, mustBeEmpty)
}

func releasePoolAffinities(p *peer, args []string) (any, error) {
	cidr, err := word(args)
	if err != nil {
		return nil, err
	}
	_, network, err := cnet.ParseCIDR(cidr)
	if err != nil {
		return nil, usageError{err.Error()}
	}
	return map[string]string{"pool": network.String()}, p.client.IPAM().ReleasePoolAffinities(p.ctx, *network)
}

func removeHost(p *peer, args []string) (any, error) {
	host, err := word(args)
	if err != nil {
		return nil, err
	}
	return map[string]string{"host": host}, p.client.IPAM().RemoveIPAMHost(p.ctx, host)
}

func getConfig(p *peer, args []string) (any, error) {
	if _, err := parse(newFlags(), args, 0); err != nil {
		return nil, err
	}
	return p.client.IPAM().GetIPAMConfig(p.ctx)
}

func setConfig(p *peer, args []string) (any, error) {
	config, err := p.client.IPAM().GetIPAMConfig(p.ctx)
	if err != nil {
		return nil, err
	}
	flags := newFlags()
	strict := flags.String("strict-affinity", strconv.FormatBool(config.StrictAffinity), "")
	auto := flags.String("auto-allocate", strconv.FormatBool(config.AutoAllocateBlocks), "")
	flags.IntVar(&config.MaxBlocksPerHost, "max-blocks", config.MaxBlocksPerHost, "")
	if _, err = parse(flags, args, 0); err != nil {
		return nil, err
	}
	if config.StrictAffinity, err = strconv.ParseBool(*strict); err != nil {
		return nil, usageError{err.Error()}
	}
	if config.AutoAllocateBlocks, err = strconv.ParseBool(*auto); err != nil {
		return nil, usageError{err.Error()}
	}
	return config, p.client.IPAM().SetIPAMConfig(p.ctx, *config)
}

func utilization(p *peer, args []string) (any, error) {
	pools, err := parse(newFlags(), args, -1)
	if err != nil {
		return nil, err
	}
	used, err := p.client.IPAM().GetUtilization(p.ctx, ipam.GetUtilizationArgs{Pools: pools})
	if err != nil {
		return nil, err
	}
	type block struct {
		CIDR      string `json:"cidr"`
		Capacity  int    `json:"capacity"`
		Available int    `json:"available"`
	}
	type pool struct {
		Name   string  `json:"name"`
		CIDR   string  `json:"cidr"`
		Blocks []block `json:"blocks"`
	}
	out := []pool{}
	for _, one := range used {
		row := pool{one.Name, one.CIDR.String(), []block{}}
		for _, b := range one.Blocks {
			row.Blocks = append(row.Blocks, block{b.CIDR.String(), b.Capacity, b.Available})
		}
		out = append(out, row)
	}
	return out, nil
}
