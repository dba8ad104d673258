module croft.example/kube-golden

go 1.23.0

// What imports this package says which version it is compiled with.
require (
	k8s.io/api v0.32.13
	k8s.io/apimachinery v0.32.13
	k8s.io/utils v0.0.0-20241104100929-3ea5e8cea738
)
