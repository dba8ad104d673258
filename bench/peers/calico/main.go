// calico-peer drives Calico's own IPAM library on an etcd or a Kubernetes API, so that Croft's tests and benchmarks have the real thing
// beside them. Each call prints one JSON document on one line; a failure prints {"error": …} and ends with status 1, wrong usage
// with 2.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/projectcalico/calico/libcalico-go/lib/apiconfig"
	bapi "github.com/projectcalico/calico/libcalico-go/lib/backend/api"
	"github.com/projectcalico/calico/libcalico-go/lib/clientv3"
	cnet "github.com/projectcalico/calico/libcalico-go/lib/net"
)

// A command reads its flags from args and answers with what is printed.
type command struct {
	usage string
	run   func(p *peer, args []string) (any, error)
}

var commands = map[string]command{
	"pool-create":             {"--name N --cidr C [--block-size B] [--node-selector S] [--ipip M] [--vxlan M] [--use U]… [--label k=v]… [--nat-outgoing] [--disabled]", poolCreate},
	"pool-update":             {"NAME [--disabled BOOL]", poolUpdate},
	"pool-get":                {"NAME", poolGet},
	"pool-list":               {"", poolList},
	"pool-delete":             {"NAME", poolDelete},
	"node-create":             {"NAME [--label k=v]… [--k8s-node NAME] [--ipip A] [--vxlan4 A] [--vxlan6 A] [--wireguard4 A] [--wireguard6 A]", nodeCreate},
	"node-get":                {"NAME", nodeGet},
	"reservation-create":      {"--name N --cidr C [--cidr C]…", reservationCreate},
	"reservation-list":        {"", reservationList},
	"auto-assign":             {"--host H --handle X [--num4 N] [--num6 N] [--pool4 CIDR]… [--pool6 CIDR]… [--attr k=v]… [--max-blocks N] [--use U]", autoAssign},
	"assign-ip":               {"--host H --handle X --ip A [--attr k=v]…", assignIP},
	"release-ips":             {"A… (each A or A,HANDLE or A,HANDLE,SEQUENCE)", releaseIPs},
	"release-by-handle":       {"HANDLE", releaseByHandle},
	"ips-by-handle":           {"HANDLE", ipsByHandle},
	"attributes":              {"A", attributes},
	"claim-affinity":          {"--host H --cidr C", claimAffinity},
	"release-affinity":        {"--host H --cidr C [--must-be-empty]", releaseAffinity},
	"release-host-affinities": {"--host H [--must-be-empty]", releaseHostAffinities},
	"release-pool-affinities": {"CIDR", releasePoolAffinities},
	"remove-host":             {"HOST", removeHost},
	"get-config":              {"", getConfig},
	"set-config":              {"[--strict-affinity BOOL] [--auto-allocate BOOL] [--max-blocks N]", setConfig},
	"utilization":             {"[POOL]…", utilization},
	"dump":                    {"", dump},
	"storm":                   {"--hosts N --pods M --workers W [--prefix P] [--family 4|6] [--release]", storm},
	"loop":                    {"--seconds T --host H [--host H]… [--workers W] [--held-max N] [--seed S] [--prefix P]", loop},
}

// What the commands need: the library, its backend below, and how to make a further client of one's own.
type peer struct {
	ctx      context.Context
	endpoint string
	client   clientv3.Interface
}

func connect(endpoint string) (clientv3.Interface, error) {
	config := apiconfig.NewCalicoAPIConfig()
	if path, ok := strings.CutPrefix(endpoint, "kubeconfig:"); ok {
		config.Spec.DatastoreType = apiconfig.Kubernetes
		config.Spec.Kubeconfig = path
		// As fast as it can: client-go's own limit is 5 requests a second.
		config.Spec.K8sClientQPS = 10000
		return clientv3.New(*config)
	}
	config.Spec.DatastoreType = apiconfig.EtcdV3
	config.Spec.EtcdEndpoints = endpoint
	return clientv3.New(*config)
}

func (p *peer) backend() bapi.Client {
	return p.client.(interface{ Backend() bapi.Client }).Backend()
}

// A flag that may be given several times.
type texts []string

func (t *texts) String() string { return strings.Join(*t, " ") }
func (t *texts) Set(value string) error {
	*t = append(*t, value)
	return nil
}

func (t *texts) pairs() (map[string]string, error) {
	out := map[string]string{}
	for _, text := range *t {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usageError{fmt.Sprintf("%q is not of the form NAME=VALUE", text)}
		}
		out[name] = value
	}
	return out, nil
}

func (t *texts) networks() ([]cnet.IPNet, error) {
	var out []cnet.IPNet
	for _, text := range *t {
		_, network, err := cnet.ParseCIDR(text)
		if err != nil {
			return nil, usageError{err.Error()}
		}
		out = append(out, *network)
	}
	return out, nil
}

type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// Flags and other words in any order; `wanted` is the number of other words, or -1 for any.
func parse(flags *flag.FlagSet, args []string, wanted int) ([]string, error) {
	flags.SetOutput(io.Discard)
	var words []string
	for {
		if err := flags.Parse(args); err != nil {
			return nil, usageError{err.Error()}
		}
		if flags.NArg() == 0 {
			break
		}
		words = append(words, flags.Arg(0))
		args = flags.Args()[1:]
	}
	if wanted >= 0 && len(words) != wanted {
		return nil, usageError{fmt.Sprintf("%d words where %d are wanted", len(words), wanted)}
	}
	return words, nil
}

func newFlags() *flag.FlagSet { return flag.NewFlagSet("", flag.ContinueOnError) }

// One word and nothing else.
func word(args []string) (string, error) {
	words, err := parse(newFlags(), args, 1)
	if err != nil {
		return "", err
	}
	return words[0], nil
}

func required(values map[string]string) error {
	for name, value := range values {
		if value == "" {
			return usageError{"--" + name + " is missing"}
		}
	}
	return nil
}

func printUsage(out io.Writer) {
	fmt.Fprintln(out, "usage: calico-peer [--endpoint URL] [--timeout SECONDS] COMMAND …")
	var names []string
	for name := range commands {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(out, "  %-24s %s\n", name, commands[name].usage)
	}
}

func show(document any) {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	if err := out.Encode(document); err != nil {
		fmt.Fprintln(os.Stderr, "calico-peer:", err)
		os.Exit(1)
	}
}

func main() {
	logrus.SetLevel(logrus.FatalLevel)
	endpoint := flag.String("endpoint", "http://127.0.0.1:2379", "etcd, or kubeconfig:FILE")
	timeout := flag.Float64("timeout", 600, "seconds for the whole call")
	flag.Usage = func() { printUsage(os.Stderr) }
	flag.Parse()
	wanted, ok := commands[flag.Arg(0)]
	if !ok {
		printUsage(os.Stderr)
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(*timeout*float64(time.Second)))
	defer cancel()
	client, err := connect(*endpoint)
	if err != nil {
		show(map[string]any{"error": err.Error()})
		os.Exit(1)
	}
	document, err := wanted.run(&peer{ctx, *endpoint, client}, flag.Args()[1:])
	if wrong := (usageError{}); errors.As(err, &wrong) {
		fmt.Fprintf(os.Stderr, "calico-peer: %s: %s\nusage: calico-peer %s %s\n", flag.Arg(0), wrong.text, flag.Arg(0), wanted.usage)
		os.Exit(2)
	}
	if err != nil {
		// What was done before the failure counts too: some addresses may have been assigned.
		show(map[string]any{"error": err.Error(), "type": fmt.Sprintf("%T", err), "done": document})
		os.Exit(1)
	}
	show(document)
}
