package hook_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay/hook"
)

// docs:begin phase

// upload is the input of the gate. Inputs are immutable: unexported fields,
// and accessors where others need them.
type upload struct{ name, kind string }

// decision is the answer of this gate and of no other. Its zero value is "no
// opinion".
type decision struct {
	Denied string `json:"denied,omitempty"`
}

func (d decision) Answer() *hook.Answer {
	if d.Denied == "" {
		return nil
	}
	return &hook.Answer{
		Severity: hook.SeverityDeny,
		Parts:    []hook.Part{{Kind: "deny", Needs: hook.CanBlock, Content: d.Denied}},
	}
}

var beforeUpload = hook.Define(hook.Definition[upload, decision]{
	Name:         "upload.before",
	Kind:         hook.Gate,
	Capabilities: hook.CanBlock,
	Labels:       map[string]func(upload) string{"kind": func(u upload) string { return u.kind }},
	Merge: func(m *hook.Merging, merged, answer decision) decision {
		if m.Wins { // the most severe wins, the earlier of equals
			return answer
		}
		return merged
	},
	Closed: func(p hook.Problem) (decision, bool) { return decision{Denied: p.Reason()}, true },
})

// docs:end phase

// check panics on an error, to keep the examples short.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// passes is a handler without an opinion.
func passes(context.Context, upload) (decision, error) { return decision{}, nil }

// This gate denies the upload of keys.
func Example_gate() {
	ctx := context.Background()
	// docs:begin gate
	noKeys := func(_ context.Context, file upload) (decision, error) {
		if strings.HasSuffix(file.name, ".pem") {
			return decision{Denied: "keys stay at home"}, nil
		}
		return decision{}, nil
	}

	runtime, err := hook.NewRuntime([]hook.AnyPhase{beforeUpload}, nil)
	check(err)
	_, err = runtime.Install(beforeUpload.On("no-keys", noKeys, nil))
	check(err)

	turn := runtime.Snapshot()
	defer func() { _ = turn.Release(ctx) }()
	for _, name := range []string{"cat.png", "id.pem"} {
		outcome, err := beforeUpload.Dispatch(ctx, turn, upload{name: name})
		check(err)
		if outcome.By != "" {
			fmt.Printf("%s is refused by %s: %s\n", name, outcome.By, outcome.Output.Denied)
		}
	}
	// docs:end gate

	// Output:
	// id.pem is refused by no-keys: keys stay at home
}
