package looptest_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// ticketNumber is a type whose rules only its UnmarshalText method knows, such as a UUID.
type ticketNumber string

func (n *ticketNumber) UnmarshalText(text []byte) error {
	if len(text) != 8 {
		return errors.New("a ticket number has 8 characters")
	}
	*n = ticketNumber(text)
	return nil
}

// A value that matches the schema can still be a value that its Go type rejects. Such a call
// is invalid before interceptors, gates, the floor and approvals. The model learns why, and
// the audit sees the call.
//
// SPEC T-13, T-14
func TestValuesThatGoTypesRejectAreInvalidBeforeGates(t *testing.T) {
	t.Parallel()
	type input struct {
		Ticket ticketNumber              `json:"ticket,omitempty"`
		Addr   netip.Addr                `json:"addr,omitzero"`
		At     time.Time                 `json:"at,omitzero"`
		Wait   time.Duration             `json:"wait,omitempty"`
		Hosts  map[netip.Addr]string     `json:"hosts,omitempty"`
		ByRoom map[int8]string           `json:"by_room,omitempty"`
		Count  int64                     `json:"count,omitempty"`
		Size   uint64                    `json:"size,omitempty"`
		Ratio  float32                   `json:"ratio,omitempty"`
		Many   map[string][]ticketNumber `json:"many,omitempty"`
	}
	type numbers struct { // no type in it decodes its JSON itself
		Count int64   `json:"count,omitempty"`
		Size  uint64  `json:"size,omitempty"`
		Ratio float32 `json:"ratio,omitempty"`
	}
	type rooms struct {
		ByRoom map[int8]string `json:"by_room"`
	}
	ran := func(context.Context) (string, error) { return "ran", nil }
	tools := []belay.Tool{
		belay.NewTool("all", "", func(ctx context.Context, _ input) (string, error) { return ran(ctx) }, nil),
		belay.NewTool("numbers", "", func(ctx context.Context, _ numbers) (string, error) { return ran(ctx) }, nil),
		belay.NewTool("rooms", "", func(ctx context.Context, _ rooms) (string, error) { return ran(ctx) }, nil),
	}
	for _, test := range []struct {
		tool, input string
		want        string // of the fault; empty if the call is valid
	}{
		{"all", `{"ticket":"AB-12345","addr":"::1","at":"2026-01-31T15:04:05Z","wait":"90s","hosts":{"10.0.0.1":"db"},"by_room":{"-7":"x"},"count":-9223372036854775808,"size":18446744073709551615,"ratio":1e3}`, ""},
		{"all", `{"ticket":"1"}`, `/ticket: "1" is rejected: a ticket number has 8 characters`},
		{"all", `{"many":{"a/b":["AB-12345","2"]}}`, `/many/a~1b/1: "2" is rejected`},
		{"all", `{"addr":"nowhere"}`, `/addr: "nowhere" is rejected`},
		{"all", `{"at":"tomorrow"}`, `/at: "tomorrow" is rejected: write a time as 2026-01-31T15:04:05Z`},
		{"all", `{"wait":"99999999999h"}`, `/wait: "99999999999h" is not a duration`},
		{"all", `{"hosts":{"nowhere":"db"}}`, `/hosts: the key "nowhere" is rejected`},
		{"all", `{"by_room":{"300":"x"}}`, `/by_room: the key "300" is rejected`},
		{"rooms", `{"by_room":{"300":"x"}}`, `/by_room: the key "300" is rejected`},
		{"numbers", `{"count":9223372036854775807,"size":18446744073709551615,"ratio":3e38}`, ""},
		{"numbers", `{"count":9223372036854775808}`, "/count: "},
		{"numbers", `{"count":1e30}`, "/count: "},
		{"numbers", `{"size":18446744073709551616}`, "/size: "},
		{"numbers", `{"ratio":1E39}`, "/ratio: "},
	} {
		t.Run(test.tool+test.input, func(t *testing.T) {
			t.Parallel()
			var d diary
			agent, model := newAgent(t, &belay.Options{
				Tools: tools,
				Interceptors: []belay.Interceptor{{Name: "around", Tool: "*", Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
					d.notef("interceptor")
					return belay.Interception{}, nil
				}}},
				Hooks: []hook.Subscription{
					belay.ToolPre.On("gate", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
						d.notef("gate")
						return belay.Pass, nil
					}, nil),
					belay.ToolDenied.On("audit", func(_ context.Context, c belay.DeniedCall) (belay.Note, error) {
						d.notef("audit %s %s by %s", c.Tool(), c.Class(), c.By())
						return belay.Note{}, nil
					}, nil),
				},
				Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
					d.notef("floor")
					return belay.Authorization{}, nil
				}),
			}, callWith(test.tool, test.input))
			session := agent.Session("s")
			takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
			got := onlyResult(t, session)
			if test.want == "" {
				wantEqual(t, "the result", got.Text, "ran")
				wantEqual(t, "who saw the call", d.all(), []string{"interceptor", "gate", "floor"})
				return
			}
			wantEqual(t, "who saw the call", d.all(), []string{"audit " + test.tool + " invalid by belay"})
			if want := "The input of " + test.tool + " does not match its schema:\n- " + test.want; !strings.HasPrefix(got.Text, want) || got.Class != belay.ClassInvalid {
				t.Errorf("the result is %q of class %q, want %q", got.Text, got.Class, want)
			}
			wantEqual(t, "the requests of the model, which may try again", len(model.Requests()), 2)
		})
	}
}

// One result lists every fault of an input: the rules of the schema that it breaks and the
// values that Go types reject. So the model can correct all of them in one call. No value is
// listed twice.
//
// SPEC T-13, T-15
func TestAllFaultsOfAnInputAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	type input struct {
		Ticket ticketNumber             `json:"ticket"`
		At     time.Time                `json:"at,omitzero"`
		Wait   time.Duration            `json:"wait,omitempty"`
		Waits  map[string]time.Duration `json:"waits,omitempty"`
		Size   int64                    `json:"size,omitempty" minimum:"1"`
		Ratio  float32                  `json:"ratio,omitempty"`
		Labels []string                 `json:"labels" minItems:"1"`
		Owner  *string                  `json:"owner" required:"true"`
	}
	tool := belay.NewTool("file", "", func(context.Context, input) (string, error) { return "ran", nil }, nil)
	for _, test := range []struct {
		input string
		want  []string
	}{
		{`{"ticket":"1","at":"tomorrow","size":0,"labels":[],"owner":"ann"}`, []string{"/labels: want at least 1 item, got 0", "/size: 0 is less than the minimum 1", `/at: "tomorrow" is rejected`, `/ticket: "1" is rejected`}},
		{`{"ticket":"1","wait":"99999999999h","waits":{"a":"88888888888h"},"size":1e30,"ratio":1e39,"labels":["a"],"owner":"ann"}`, []string{"/ratio: the number 1e39", "/size: the number 1e30", `/ticket: "1"`, `/wait: "99999999999h"`, `/waits/a: "88888888888h"`}},
		{`{"ticket":7,"wait":"soon","labels":["a"],"owner":null}`, []string{"/owner: ", "/ticket: ", "/wait: "}},
		{`{"ticket":"AB-12345","size":5.0,"wait":5,"labels":["a"],"owner":"ann"}`, nil},
	} {
		agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}}, callWith("file", test.input))
		session := agent.Session("s")
		takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
		lines := strings.Split(onlyResult(t, session).Text, "\n- ")
		faults := slices.Sorted(slices.Values(lines[1:]))
		slices.Sort(test.want)
		if !slices.EqualFunc(faults, test.want, strings.HasPrefix) {
			t.Errorf("%s gives %q, want %q", test.input, faults, test.want)
		}
	}
}

// A hook that rewrites an input to a value that a Go type rejects makes the call invalid. The
// floor does not see it.
//
// SPEC T-13, T-14
func TestRewrittenValuesThatGoTypesRejectAreInvalid(t *testing.T) {
	t.Parallel()
	var d diary
	tool := belay.NewTool("ping", "", func(_ context.Context, in struct {
		Addr netip.Addr `json:"addr"`
	},
	) (string, error) {
		d.notef("pinged %s", in.Addr)
		return "ok", nil
	}, nil)
	agent, _ := newAgent(t, &belay.Options{
		Tools: []belay.Tool{tool},
		Hooks: []hook.Subscription{
			rewriterOf("spoils", `{"addr":"nowhere"}`),
			belay.ToolDenied.On("audit", func(_ context.Context, c belay.DeniedCall) (belay.Note, error) {
				d.notef("audit %s %s by %s", c.Tool(), c.Class(), c.By())
				return belay.Note{}, nil
			}, nil),
		},
		Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
			d.notef("floor")
			return belay.Authorization{}, nil
		}),
	}, callWith("ping", `{"addr":"::1"}`))
	session := agent.Session("s")
	takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
	wantEqual(t, "who saw the call", d.all(), []string{"audit ping invalid by belay"})
	if got := onlyResult(t, session); got.Class != belay.ClassInvalid || !strings.Contains(got.Text, `/addr: "nowhere" is rejected`) {
		t.Errorf("the result is %q of class %q", got.Text, got.Class)
	}
}
