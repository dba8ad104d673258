// golden writes what this version of Kubernetes stores; see ../../golden.
package main

import golden "croft.example/kube-golden"

func main() {
	golden.Main(golden.Scheme(), golden.Objects())
}
