package hooktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// file is the input of the phases in the tests and examples: a file that is uploaded. Like
// every input it is immutable.
type file struct {
	name  string
	owner string
	scope hook.Scope
}

// verdict is the answer of the gate.
type verdict struct {
	Severity hook.Severity `json:"severity,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Rename   string        `json:"rename,omitempty"`
	Audit    []hook.Audit  `json:"audit,omitempty"`
	Jobs     []hook.Job    `json:"jobs,omitempty"`
}

func (v verdict) Answer() *hook.Answer {
	answer := &hook.Answer{Severity: v.Severity, Audit: v.Audit, Jobs: v.Jobs}
	switch v.Severity {
	case hook.SeverityAsk:
		answer.Parts = append(answer.Parts, hook.Part{Kind: "ask", Needs: hook.CanAsk, Content: v.Reason})
	case hook.SeverityDeny, hook.SeverityHalt:
		answer.Parts = append(answer.Parts, hook.Part{Kind: v.Severity.String(), Needs: hook.CanBlock, Content: v.Reason})
	default:
	}
	if v.Rename != "" {
		answer.Parts = append(answer.Parts, hook.Part{Kind: "input", Needs: hook.CanRewriteInput, Content: v.Rename})
	}
	return answer
}

func deny(reason string) verdict { return verdict{Severity: hook.SeverityDeny, Reason: reason} }

// upload is a gate: it fires before a file is uploaded.
var upload = hook.Define(hook.Definition[file, verdict]{
	Name: "upload", Kind: hook.Gate,
	Capabilities: hook.CanBlock | hook.CanAsk | hook.CanAudit | hook.CanSchedule | hook.CanRewriteInput,
	Labels:       map[string]func(file) string{"owner": func(f file) string { return f.owner }},
	Scope:        func(f file) *hook.Scope { return &f.scope },
	Merge: func(m *hook.Merging, merged, answer verdict) verdict {
		if m.Wins {
			return answer
		}
		return merged
	},
	Rewrite: func(f file, answer verdict) (file, error) {
		f.name = answer.Rename
		return f, nil
	},
	Closed: func(p hook.Problem) (verdict, bool) { return deny(p.Reason()), true },
	Decode: func(scope hook.Scope, data []byte) (file, error) {
		var in struct {
			Name  string `json:"name"`
			Owner string `json:"owner"`
		}
		if err := json.Unmarshal(data, &in); err != nil {
			return file{}, err
		}
		if in.Name == "" {
			return file{}, errors.New("name: there is none")
		}
		return file{in.Name, in.Owner, scope}, nil
	},
})

// tags is the answer at the collect phase. It is used as a pointer, so that it can be nil.
type tags struct {
	Tags []string   `json:"tags,omitempty"`
	Jobs []hook.Job `json:"jobs,omitempty"`
}

func (t *tags) Answer() *hook.Answer {
	answer := &hook.Answer{Jobs: t.Jobs}
	for _, tag := range t.Tags {
		answer.Parts = append(answer.Parts, hook.Part{Kind: "context", Needs: hook.CanAddContext, Content: tag})
	}
	return answer
}

// tagging collects the tags of a file.
var tagging = hook.Define(hook.Definition[file, *tags]{
	Name: "tagging", Kind: hook.Collect, Capabilities: hook.CanAddContext | hook.CanSchedule,
	Merge: func(m *hook.Merging, merged, answer *tags) *tags {
		if answer == nil {
			return merged
		}
		if merged == nil {
			return answer
		}
		m.Diagnose(codes.PolicyConflict, "several subscriptions tag")
		return &tags{Tags: append(merged.Tags, answer.Tags...)}
	},
	Reference: func(f file) string { return "files/" + f.name },
})

// remark is the answer at the observe phase.
type remark struct {
	Audit []hook.Audit `json:"audit,omitempty"`
}

func (r remark) Answer() *hook.Answer { return &hook.Answer{Audit: r.Audit} }

// uploaded fires after a file was uploaded.
var uploaded = hook.Define(hook.Definition[file, remark]{
	Name: "uploaded", Kind: hook.Observe, Capabilities: hook.CanAudit,
	Reference: func(f file) string { return "files/" + f.name },
})

// noSecrets denies files that look like secrets.
var noSecrets = upload.On("no-secrets", func(_ context.Context, f file) (verdict, error) {
	if strings.HasPrefix(f.name, ".env") {
		return deny(f.name + " looks like a secret"), nil
	}
	return verdict{}, nil
}, &hook.Options{Version: "1"})

// answers makes a handler that answers with out.
func answers[Out hook.Output](out Out) hook.Handler[file, Out] {
	return func(context.Context, file) (Out, error) { return out, nil }
}
