package sandbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Encoding and decoding an order returns the same order, whatever the names are.
func TestOrdersArrive(t *testing.T) {
	t.Parallel()
	name := rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 1, 20), func(b []byte) string { return "/" + string(b) })
	names := rapid.SliceOfN(name, 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		sent := order{
			kind:  rapid.SampledFrom([]Kind{Landlock, Namespaces}).Draw(t, "kind"),
			means: means{abi: rapid.IntRange(1, 20).Draw(t, "abi"), users: rapid.Bool().Draw(t, "users")},
			policy: Policy{Network: rapid.Bool().Draw(t, "network"), Bounds: Bounds{
				Memory: rapid.Int64Min(0).Draw(t, "memory"), Processes: rapid.IntMin(0).Draw(t, "processes"),
				CPUTime: time.Duration(rapid.Int64Min(0).Draw(t, "time")), Settings: rapid.String().Draw(t, "settings"),
			}},
			program: name.Draw(t, "program"),
			argv:    rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "argv"),
		}
		for _, list := range []*[]string{&sent.policy.Write, &sent.policy.Protect, &sent.policy.Hide, &sent.policy.Sockets} {
			if drawn := names.Draw(t, "names"); len(drawn) > 0 {
				*list = drawn
			}
		}
		args := sent.arguments()
		got, err := parseOrder(args[1:])
		if err != nil || args[0] != marker {
			t.Fatalf("%q: %v", args, err)
		}
		if diff := cmp.Diff(sent, got, cmp.AllowUnexported(order{}, means{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzOrder(f *testing.F) {
	f.Add("kind=landlock", "abi=1", "program=/bin/sh", "--", "sh")
	f.Add("kind=jail", "abi=-1", "users=x", "network", "")
	f.Fuzz(func(t *testing.T, a, b, c, d, e string) {
		o, err := parseOrder([]string{a, b, c, d, e})
		if err == nil && (o.check() != nil || len(o.argv) == 0) {
			t.Errorf("%+v was accepted", o)
		}
	})
}
