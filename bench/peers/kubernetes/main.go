// kubernetes-peer does the work of bench/service_range_bench.cc with Kubernetes' own allocator of Service addresses and
// node ports, and prints the same rows: a line of JSON each.
package main

import (
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"time"

	"k8s.io/kubernetes/pkg/registry/core/service/allocator"
)

const (
	callsATime = 64
	roundsMin  = 32
	timed      = 300 * time.Millisecond
)

type shape struct {
	name       string
	size, band int
}

var (
	shapes   = []shape{{"/12", 1048574, 256}, {"/16", 65534, 256}, {"/24", 254, 16}, {"v6 /112", 65535, 256}}
	perMille = []int{0, 500, 900, 999}
)

func (s shape) empty() *allocator.AllocationBitmap {
	return allocator.NewAllocationMapWithOffset(s.size, s.name, s.band)
}

func printRow(row string, ns float64) { fmt.Printf("{\"row\": %q, \"ns\": %.2f}\n", row, ns) }

func fail(what string, err error) {
	fmt.Fprintln(os.Stderr, what, err)
	os.Exit(1)
}

// Repeats run, with after behind each, until both the time and the rounds are enough; the mean of one in ns, without the
// slowest twentieth, in which the machine did something else.
func meanNs(run, after func()) float64 {
	var rounds []time.Duration
	for sum := time.Duration(0); len(rounds) < roundsMin || sum < timed; {
		start := time.Now()
		run()
		took := time.Since(start)
		after()
		rounds = append(rounds, took)
		sum += took
	}
	slices.Sort(rounds)
	rounds = rounds[:len(rounds)-len(rounds)/20]
	var sum time.Duration
	for _, took := range rounds {
		sum += took
	}
	return float64(sum.Nanoseconds()) / float64(len(rounds))
}

func fill(r *allocator.AllocationBitmap, count int) {
	for i := 0; i < count; i++ {
		if _, ok, err := r.AllocateNext(); !ok || err != nil {
			fail("full too early:", err)
		}
	}
}

func takeNextAt(s shape, perMille int) {
	level := min(s.size*perMille/1000, s.size-1)
	callsARange := max(1, min((s.size-level)/16, callsATime))
	count := callsATime / callsARange
	ranges := make([]*allocator.AllocationBitmap, count)
	for i := range ranges {
		ranges[i] = s.empty()
		fill(ranges[i], level)
	}
	taken := make([]int, count*callsARange)
	take := func() {
		at := 0
		for _, r := range ranges {
			for i := 0; i < callsARange; i++ {
				taken[at], _, _ = r.AllocateNext()
				at++
			}
		}
	}
	giveBack := func() {
		for i, offset := range taken {
			if err := ranges[i/callsARange].Release(offset); err != nil {
				fail("release:", err)
			}
		}
	}
	row := fmt.Sprintf("next %s at %d.%d %%", s.name, perMille/10, perMille%10)
	printRow(row, meanNs(take, giveBack)/float64(len(taken)))
}

func wholeFill(s shape) {
	r := s.empty()
	run := func() {
		for ok := true; ok; {
			_, ok, _ = r.AllocateNext()
		}
	}
	printRow("whole fill "+s.name, meanNs(run, func() { r = s.empty() })/float64(s.size))
}

func encodeAndDecode(s shape) {
	r := s.empty()
	fill(r, s.size)
	run := func() {
		if err := r.Restore(r.Snapshot()); err != nil {
			fail("restore:", err)
		}
	}
	printRow("encode and decode a full "+s.name, meanNs(run, func() {}))
}

// The squares are taken.
func bytesOf(s shape) {
	r := s.empty()
	for i := 0; i < 1000; i++ {
		if _, err := r.Allocate(i * i % s.size); err != nil {
			fail("allocate:", err)
		}
	}
	_, data := r.Snapshot()
	hash := fnv.New64a()
	hash.Write(data)
	fmt.Printf("{\"row\": %q, \"fnv\": \"%016x\"}\n", "bytes "+s.name, hash.Sum64())
}

func main() {
	for _, s := range shapes {
		bytesOf(s)
	}
	for _, s := range shapes {
		for _, p := range perMille {
			takeNextAt(s, p)
		}
	}
	for _, s := range shapes {
		wholeFill(s)
	}
	encodeAndDecode(shapes[0])
}
