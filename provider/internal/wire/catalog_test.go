package wire_test

import (
	"testing"

	"charm.land/catwalk/pkg/catwalk"
	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wire"
)

func TestCatalogs(t *testing.T) {
	t.Parallel()
	catalog := wire.CatalogOf("deepseek")
	names := catalog.Names()
	if len(names) == 0 || wire.CatalogAt("api.deepseek.com") != catalog {
		t.Fatalf("got %q, want the models of DeepSeek, by name and by host", names)
	}
	if m := catalog.Find(names[0]); m == nil || m.ID != names[0] {
		t.Errorf("got %+v, want %s", m, names[0])
	}
	if none := wire.CatalogOf("nobody"); none != nil || none.Find("m") != nil || none.Names() != nil || wire.CatalogAt("nowhere") != nil {
		t.Error("a provider that is not in the table has a catalog")
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	listed := &catwalk.Model{ContextWindow: 100, DefaultMaxTokens: 10}
	price := func(*catwalk.Model) belay.Price { return belay.Price{In: 1} }
	for _, test := range []struct {
		rule string
		got  belay.ModelInfo
		want belay.ModelInfo
	}{
		{"a model that is not listed has its name", wire.Info("p/m", nil, price, 0, belay.Price{}), belay.ModelInfo{Name: "p/m"}},
		{"a listed model has what the table says", wire.Info("p/m", listed, price, 0, belay.Price{}), belay.ModelInfo{Name: "p/m", Window: 100, MaxOutput: 10, Price: belay.Price{In: 1}}},
		{"options overrule the table", wire.Info("p/m", listed, price, 7, belay.Price{Out: 2}), belay.ModelInfo{Name: "p/m", Window: 7, MaxOutput: 10, Price: belay.Price{Out: 2}}},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.rule, diff)
		}
	}
}
