package main

import (
	"errors"
	"fmt"
	"math/rand"
	"sort"
	"sync"
	"time"

	api "github.com/projectcalico/api/pkg/apis/projectcalico/v3"

	libapi "github.com/projectcalico/calico/libcalico-go/lib/apis/v3"
	"github.com/projectcalico/calico/libcalico-go/lib/clientv3"
	cerrors "github.com/projectcalico/calico/libcalico-go/lib/errors"
	"github.com/projectcalico/calico/libcalico-go/lib/ipam"
	"github.com/projectcalico/calico/libcalico-go/lib/options"
)

// Who holds which address, as far as this process knows, and what went wrong.
type register struct {
	mutex      sync.Mutex
	holders    map[string]string
	violations []string
	errors     int
	firstError string
}

func newRegister() *register { return &register{holders: map[string]string{}} }

func (r *register) took(address, handle string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if before, held := r.holders[address]; held {
		r.violations = append(r.violations, fmt.Sprintf("%s went to %s while %s held it", address, handle, before))
	}
	r.holders[address] = handle
}

// Called before the release: from its commit on the address may be somebody else's.
func (r *register) gives(address string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.holders, address)
}

func (r *register) failed(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.errors++; r.errors == 1 {
		r.firstError = err.Error()
	}
}

// The durations of one kind of call, in the order in which they ended.
type durations struct {
	mutex sync.Mutex
	all   []time.Duration
}

func (d *durations) add(one time.Duration) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.all = append(d.all, one)
}

func (d *durations) at(share float64) int64 {
	if len(d.all) == 0 {
		return 0
	}
	sort.Slice(d.all, func(i, j int) bool { return d.all[i] < d.all[j] })
	return d.all[int(share*float64(len(d.all)-1))].Microseconds()
}

func (p *peer) ensureNode(name string) error {
	node := libapi.NewNode()
	node.Name = name
	_, err := p.client.Nodes().Create(p.ctx, node, options.SetOptions{})
	if exists := (cerrors.ErrorResourceAlreadyExists{}); errors.As(err, &exists) {
		return nil
	}
	// In a Kubernetes API nodes are made by others.
	if foreign := (cerrors.ErrorOperationNotSupported{}); errors.As(err, &foreign) {
		return nil
	}
	return err
}

// One address for one handle; nothing is an error too.
func (p *peer) assignOne(client clientv3.Interface, host, handle string, family int) (string, error) {
	args := ipam.AutoAssignArgs{
		HandleID:    &handle,
		Hostname:    host,
		Attrs:       map[string]string{"node": host, "pod": handle, "namespace": "default"},
		IntendedUse: api.IPPoolAllowedUseWorkload,
	}
	if family == 6 {
		args.Num6 = 1
	} else {
		args.Num4 = 1
	}
	v4, v6, err := client.IPAM().AutoAssign(p.ctx, args)
	if err != nil {
		return "", err
	}
	for _, result := range []*ipam.IPAMAssignments{v4, v6} {
		if result != nil && len(result.IPs) == 1 {
			return result.IPs[0].IP.String(), nil
		}
	}
	return "", fmt.Errorf("nothing was assigned to %s: %+v %+v", handle, assignedOf(v4), assignedOf(v6))
}

// Runs work(worker, client) in `count` goroutines with a client each; answers when all have ended.
func (p *peer) inParallel(count int, work func(worker int, client clientv3.Interface)) error {
	clients := make([]clientv3.Interface, count)
	for i := range clients {
		var err error
		if clients[i], err = connect(p.endpoint); err != nil {
			return err
		}
		// The first call connects; that is not what is measured.
		if _, err = clients[i].IPPools().List(p.ctx, options.ListOptions{}); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	for i, client := range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			work(i, client)
		}()
	}
	all.Wait()
	return nil
}

// hosts × pods addresses, one a call; worker i acts for the hosts i, i+W, i+2W, …
func storm(p *peer, args []string) (any, error) {
	flags := newFlags()
	hosts := flags.Int("hosts", 0, "")
	pods := flags.Int("pods", 0, "")
	workers := flags.Int("workers", 0, "")
	prefix := flags.String("prefix", "storm", "")
	family := flags.Int("family", 4, "")
	release := flags.Bool("release", false, "")
	if _, err := parse(flags, args, 0); err != nil {
		return nil, err
	}
	if *hosts < 1 || *pods < 1 || *workers < 1 {
		return nil, usageError{"--hosts, --pods and --workers must be at least 1"}
	}
	host := func(i int) string { return fmt.Sprintf("%s-%d", *prefix, i) }
	handle := func(i, pod int) string { return fmt.Sprintf("%s.%s.%d", *prefix, host(i), pod) }
	for i := 0; i < *hosts; i++ {
		if err := p.ensureNode(host(i)); err != nil {
			return nil, err
		}
	}
	held := newRegister()
	run := func(one func(client clientv3.Interface, i, pod int) error) (float64, *durations, error) {
		var took durations
		var first sync.Once
		var start time.Time
		err := p.inParallel(*workers, func(worker int, client clientv3.Interface) {
			first.Do(func() { start = time.Now() })
			for i := worker; i < *hosts; i += *workers {
				for pod := 0; pod < *pods; pod++ {
					begin := time.Now()
					err := one(client, i, pod)
					took.add(time.Since(begin))
					if err != nil {
						held.failed(err)
					}
				}
			}
		})
		return time.Since(start).Seconds(), &took, err
	}
	seconds, took, err := run(func(client clientv3.Interface, i, pod int) error {
		address, err := p.assignOne(client, host(i), handle(i, pod), *family)
		if err == nil {
			held.took(address, handle(i, pod))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := map[string]any{
		"assigned": len(held.holders), "seconds": seconds, "p50_us": took.at(0.5), "p99_us": took.at(0.99),
		"per_second": float64(len(held.holders)) / seconds,
	}
	if *release {
		seconds, took, err := run(func(client clientv3.Interface, i, pod int) error {
			return client.IPAM().ReleaseByHandle(p.ctx, handle(i, pod))
		})
		if err != nil {
			return nil, err
		}
		out["release_seconds"] = seconds
		out["release_p50_us"] = took.at(0.5)
		out["release_p99_us"] = took.at(0.99)
	}
	out["errors"] = held.errors
	out["first_error"] = held.firstError
	out["violations"] = held.violations
	return out, held.verdict()
}

func (r *register) verdict() error {
	if len(r.violations) > 0 {
		return fmt.Errorf("an address had two holders: %s", r.violations[0])
	}
	return nil
}

// Assigns and releases at random for some seconds, beside whoever else works on the same etcd, and answers with what
// it holds in the end.
func loop(p *peer, args []string) (any, error) {
	flags := newFlags()
	var hosts texts
	seconds := flags.Float64("seconds", 0, "")
	workers := flags.Int("workers", 1, "")
	heldMax := flags.Int("held-max", 32, "")
	seed := flags.Int64("seed", 1, "")
	prefix := flags.String("prefix", "loop", "")
	family := flags.Int("family", 4, "")
	flags.Var(&hosts, "host", "")
	if _, err := parse(flags, args, 0); err != nil {
		return nil, err
	}
	if *seconds <= 0 || *workers < 1 || *heldMax < 1 || len(hosts) == 0 {
		return nil, usageError{"--seconds and --host are wanted; --workers and --held-max are at least 1"}
	}
	for _, host := range hosts {
		if err := p.ensureNode(host); err != nil {
			return nil, err
		}
	}
	type holding struct{ address, handle string }
	held := newRegister()
	var counts sync.Mutex
	assigns, releases := 0, 0
	end := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	err := p.inParallel(*workers, func(worker int, client clientv3.Interface) {
		random := rand.New(rand.NewSource(*seed + int64(worker)))
		var mine []holding
		for number := 0; time.Now().Before(end); number++ {
			if len(mine) < *heldMax && (len(mine) == 0 || random.Intn(2) == 0) {
				host := hosts[random.Intn(len(hosts))]
				handle := fmt.Sprintf("%s.%d.%d", *prefix, worker, number)
				address, err := p.assignOne(client, host, handle, *family)
				if err != nil {
					held.failed(err)
					continue
				}
				held.took(address, handle)
				mine = append(mine, holding{address, handle})
				counts.Lock()
				assigns++
				counts.Unlock()
				continue
			}
			which := random.Intn(len(mine))
			one := mine[which]
			mine = append(mine[:which], mine[which+1:]...)
			held.gives(one.address)
			if err := client.IPAM().ReleaseByHandle(p.ctx, one.handle); err != nil {
				held.failed(err)
			}
			counts.Lock()
			releases++
			counts.Unlock()
		}
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"assigns": assigns, "releases": releases, "held": held.holders, "errors": held.errors,
		"first_error": held.firstError, "violations": held.violations,
	}, held.verdict()
}
