package golden

import (
	"math/big"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The bitmap of an allocator: one big integer, its bytes the big end first, none of them to spare.
func bitmap(offsets ...int) []byte {
	bits := new(big.Int)
	for _, offset := range offsets {
		bits.SetBit(bits, offset, 1)
	}
	return bits.Bytes()
}

func upTo(end int) []int {
	offsets := make([]int, end)
	for i := range offsets {
		offsets[i] = i
	}
	return offsets
}

func rangeOf(name, text string, data []byte) Object {
	return Object{name, corev1.SchemeGroupVersion, &corev1.RangeAllocation{Range: text, Data: data}}
}

func ranges() []Object {
	named := rangeOf("range_metadata", "10.96.0.0/24", bitmap(0, 9, 253))
	named.Object.(*corev1.RangeAllocation).ObjectMeta = metav1.ObjectMeta{
		Name:        "serviceips",
		Labels:      map[string]string{"app": "croft", "tier": ""},
		Annotations: map[string]string{"example.com/written-by": "a <careful> operator & co", "z": "last"},
	}
	return []Object{
		rangeOf("range_addresses", "10.0.0.0/24", bitmap(0, 9, 19)),
		rangeOf("range_ports", "30000-32767", bitmap(80)),
		rangeOf("range_ports_several", "30000-32767", bitmap(80, 443, 2767)),
		rangeOf("range_ipv6", "fd00:10:96::/112", bitmap(0, 9, 65534)),
		// What a big integer of zero leaves, and what an object that was never filled has.
		rangeOf("range_empty", "10.0.0.0/24", bitmap()),
		rangeOf("range_nil", "10.0.0.0/24", nil),
		rangeOf("range_full", "10.0.0.0/24", bitmap(upTo(254)...)),
		// No allocator writes these two; one of another make, or a hand, may have.
		rangeOf("range_untrimmed", "10.0.0.0/24", append([]byte{0, 0}, bitmap(0, 9, 19)...)),
		rangeOf("range_too_long", "10.0.0.0/24", bitmap(0, 253, 254, 300)),
		named,
	}
}
