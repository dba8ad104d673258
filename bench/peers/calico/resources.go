package main

import (
	"strconv"

	api "github.com/projectcalico/api/pkg/apis/projectcalico/v3"

	libapi "github.com/projectcalico/calico/libcalico-go/lib/apis/v3"
	"github.com/projectcalico/calico/libcalico-go/lib/options"
)

func poolCreate(p *peer, args []string) (any, error) {
	flags := newFlags()
	var uses, labels texts
	pool := api.NewIPPool()
	flags.StringVar(&pool.Name, "name", "", "")
	flags.StringVar(&pool.Spec.CIDR, "cidr", "", "")
	flags.IntVar(&pool.Spec.BlockSize, "block-size", 0, "")
	flags.StringVar(&pool.Spec.NodeSelector, "node-selector", "", "")
	flags.BoolVar(&pool.Spec.Disabled, "disabled", false, "")
	flags.BoolVar(&pool.Spec.NATOutgoing, "nat-outgoing", false, "")
	flags.BoolVar(&pool.Spec.DisableBGPExport, "disable-bgp-export", false, "")
	ipip := flags.String("ipip", "", "")
	vxlan := flags.String("vxlan", "", "")
	flags.Var(&uses, "use", "")
	flags.Var(&labels, "label", "")
	if _, err := parse(flags, args, 0); err != nil {
		return nil, err
	}
	if err := required(map[string]string{"name": pool.Name, "cidr": pool.Spec.CIDR}); err != nil {
		return nil, err
	}
	pool.Spec.IPIPMode = api.IPIPMode(*ipip)
	pool.Spec.VXLANMode = api.VXLANMode(*vxlan)
	for _, use := range uses {
		pool.Spec.AllowedUses = append(pool.Spec.AllowedUses, api.IPPoolAllowedUse(use))
	}
	if len(labels) > 0 {
		var err error
		if pool.Labels, err = labels.pairs(); err != nil {
			return nil, err
		}
	}
	return p.client.IPPools().Create(p.ctx, pool, options.SetOptions{})
}

// Reads a pool and writes it back, with `disabled` changed if that is said.
func poolUpdate(p *peer, args []string) (any, error) {
	flags := newFlags()
	disabled := flags.String("disabled", "", "")
	words, err := parse(flags, args, 1)
	if err != nil {
		return nil, err
	}
	pool, err := p.client.IPPools().Get(p.ctx, words[0], options.GetOptions{})
	if err != nil {
		return nil, err
	}
	if *disabled != "" {
		if pool.Spec.Disabled, err = strconv.ParseBool(*disabled); err != nil {
			return nil, usageError{err.Error()}
		}
	}
	return p.client.IPPools().Update(p.ctx, pool, options.SetOptions{})
}

func poolGet(p *peer, args []string) (any, error) {
	name, err := word(args)
	if err != nil {
		return nil, err
	}
	return p.client.IPPools().Get(p.ctx, name, options.GetOptions{})
}

func poolList(p *peer, args []string) (any, error) {
	if _, err := parse(newFlags(), args, 0); err != nil {
		return nil, err
	}
	return p.client.IPPools().List(p.ctx, options.ListOptions{})
}

func poolDelete(p *peer, args []string) (any, error) {
	name, err := word(args)
	if err != nil {
		return nil, err
	}
	return p.client.IPPools().Delete(p.ctx, name, options.DeleteOptions{})
}

func nodeCreate(p *peer, args []string) (any, error) {
	flags := newFlags()
	var labels texts
	node := libapi.NewNode()
	bgp := libapi.NodeBGPSpec{}
	wireguard := libapi.NodeWireguardSpec{}
	flags.Var(&labels, "label", "")
	kubernetes := flags.String("k8s-node", "", "")
	flags.StringVar(&bgp.IPv4IPIPTunnelAddr, "ipip", "", "")
	flags.StringVar(&node.Spec.IPv4VXLANTunnelAddr, "vxlan4", "", "")
	flags.StringVar(&node.Spec.IPv6VXLANTunnelAddr, "vxlan6", "", "")
	flags.StringVar(&wireguard.InterfaceIPv4Address, "wireguard4", "", "")
	flags.StringVar(&wireguard.InterfaceIPv6Address, "wireguard6", "", "")
	words, err := parse(flags, args, 1)
	if err != nil {
		return nil, err
	}
	node.Name = words[0]
	if len(labels) > 0 {
		if node.Labels, err = labels.pairs(); err != nil {
			return nil, err
		}
	}
	if *kubernetes != "" {
		node.Spec.OrchRefs = []libapi.OrchRef{{NodeName: *kubernetes, Orchestrator: "k8s"}}
	}
	if bgp != (libapi.NodeBGPSpec{}) {
		node.Spec.BGP = &bgp
	}
	if wireguard != (libapi.NodeWireguardSpec{}) {
		node.Spec.Wireguard = &wireguard
	}
	return p.client.Nodes().Create(p.ctx, node, options.SetOptions{})
}

func nodeGet(p *peer, args []string) (any, error) {
	name, err := word(args)
	if err != nil {
		return nil, err
	}
	return p.client.Nodes().Get(p.ctx, name, options.GetOptions{})
}

func reservationCreate(p *peer, args []string) (any, error) {
	flags := newFlags()
	var cidrs texts
	reservation := api.NewIPReservation()
	flags.StringVar(&reservation.Name, "name", "", "")
	flags.Var(&cidrs, "cidr", "")
	if _, err := parse(flags, args, 0); err != nil {
		return nil, err
	}
	if err := required(map[string]string{"name": reservation.Name}); err != nil {
		return nil, err
	}
	reservation.Spec.ReservedCIDRs = cidrs
	return p.client.IPReservations().Create(p.ctx, reservation, options.SetOptions{})
}

func reservationList(p *peer, args []string) (any, error) {
	if _, err := parse(newFlags(), args, 0); err != nil {
		return nil, err
	}
	return p.client.IPReservations().List(p.ctx, options.ListOptions{})
}
