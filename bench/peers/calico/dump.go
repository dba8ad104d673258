package main

import (
	"strings"
	"time"

	etcd "go.etcd.io/etcd/client/v3"

	api "github.com/projectcalico/api/pkg/apis/projectcalico/v3"

	libapi "github.com/projectcalico/calico/libcalico-go/lib/apis/v3"
	"github.com/projectcalico/calico/libcalico-go/lib/backend/model"
)

type entry struct {
	Key      string `json:"key"`
	Revision string `json:"revision"`
	Value    any    `json:"value"`
}

// Everything of IPAM as Calico's backend decodes it. Its lists pass over what they can't decode without a word, so the
// keys that etcd has and no list answered with are named in `undecoded`.
func dump(p *peer, args []string) (any, error) {
	if _, err := parse(newFlags(), args, 0); err != nil {
		return nil, err
	}
	kinds := []struct {
		name string
		list model.ListInterface
	}{
		{"blocks", model.BlockListOptions{}},
		{"affinities", model.BlockAffinityListOptions{}},
		{"handles", model.IPAMHandleListOptions{}},
		{"pools", model.ResourceListOptions{Kind: api.KindIPPool}},
		{"reservations", model.ResourceListOptions{Kind: api.KindIPReservation}},
		{"nodes", model.ResourceListOptions{Kind: libapi.KindNode}},
	}
	out := map[string]any{}
	decoded := map[string]bool{}
	for _, kind := range kinds {
		found, err := p.backend().List(p.ctx, kind.list, "")
		if err != nil {
			return nil, err
		}
		entries := []entry{}
		for _, pair := range found.KVPairs {
			key, err := model.KeyToDefaultPath(pair.Key)
			if err != nil {
				return nil, err
			}
			decoded[key] = true
			entries = append(entries, entry{key, pair.Revision, pair.Value})
		}
		out[kind.name] = entries
	}
	out["config"] = nil
	if config, err := p.backend().Get(p.ctx, model.IPAMConfigKey{}, ""); err == nil {
		key, err := model.KeyToDefaultPath(config.Key)
		if err != nil {
			return nil, err
		}
		decoded[key] = true
		out["config"] = entry{key, config.Revision, config.Value}
	}
	undecoded, err := p.keysBut(decoded)
	out["undecoded"] = undecoded
	return out, err
}

func (p *peer) keysBut(decoded map[string]bool) ([]string, error) {
	client, err := etcd.New(etcd.Config{Endpoints: strings.Split(p.endpoint, ","), DialTimeout: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	out := []string{}
	for _, prefix := range []string{
		"/calico/ipam/v2/",
		"/calico/resources/v3/projectcalico.org/ippools/",
		"/calico/resources/v3/projectcalico.org/ipreservations/",
		"/calico/resources/v3/projectcalico.org/nodes/",
	} {
		found, err := client.Get(p.ctx, prefix, etcd.WithPrefix(), etcd.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		for _, pair := range found.Kvs {
			if !decoded[string(pair.Key)] {
				out = append(out, string(pair.Key))
			}
		}
	}
	return out, nil
}
