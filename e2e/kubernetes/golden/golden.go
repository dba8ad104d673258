// Package golden has the objects that Croft's decoders are tested with, and writes them the way a kube-apiserver writes
// them into etcd: with Kubernetes' own types and serializers, once as protobuf and once as JSON.
package golden

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// An Object is written to Name.pb and Name.json.
type Object struct {
	Name    string
	Version schema.GroupVersion
	Object  runtime.Object
}

// Scheme knows the versions that every Kubernetes compiled here has.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(networkingv1beta1.AddToScheme(scheme))
	return scheme
}

// Objects are those of the versions in Scheme.
func Objects() []Object {
	return append(append(ranges(), services()...), beta()...)
}

// Main is the program `golden [--beside DIRECTORY] DIRECTORY`: it writes all objects to DIRECTORY, or only those files
// that differ from what another version wrote to the one beside.
func Main(scheme *runtime.Scheme, objects []Object) {
	beside := flag.String("beside", "", "write only what differs from the file of that name here")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: golden [--beside DIRECTORY] DIRECTORY")
		os.Exit(2)
	}
	if err := write(scheme, objects, flag.Arg(0), *beside); err != nil {
		fmt.Fprintln(os.Stderr, "golden:", err)
		os.Exit(1)
	}
}

func write(scheme *runtime.Scheme, objects []Object, directory, beside string) error {
	codecs := serializer.NewCodecFactory(scheme)
	forms := map[string]runtime.Encoder{
		".pb":   protobuf.NewSerializer(scheme, scheme),
		".json": json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{}),
	}
	for _, object := range objects {
		for suffix, form := range forms {
			var value bytes.Buffer
			if err := codecs.EncoderForVersion(form, object.Version).Encode(object.Object, &value); err != nil {
				return fmt.Errorf("%s: %w", object.Name, err)
			}
			name := object.Name + suffix
			if beside != "" {
				if other, err := os.ReadFile(filepath.Join(beside, name)); err == nil && bytes.Equal(other, value.Bytes()) {
					continue
				}
			}
			if err := os.WriteFile(filepath.Join(directory, name), value.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
