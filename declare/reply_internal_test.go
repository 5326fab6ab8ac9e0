package declare

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/phasejson"
)

func codecOf(t testing.TB, phase string) *codec {
	t.Helper()
	wire, err := phasejson.New(phase)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCodec(wire, hook.Blocking)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// SPEC C-03, C-12
func TestReplies(t *testing.T) {
	t.Parallel()
	const deny = `{"decision":"deny"}`
	for _, test := range []struct {
		rule  string
		phase string
		out   string
		want  string // the answer; "" means no opinion
		fails string // a part of the error
	}{
		{"nothing", "tool.pre", "", "", ""},
		{"white space", "tool.pre", " \r\n\t", "", ""},
		{"an empty object", "tool.pre", "{}", "", ""},
		{"pass", "tool.pre", `{"decision": "pass"}`, "{}", ""},
		{
			"all keys", "tool.pre", `{"decision": "ask", "reason": "r", "output": "o", "audit": [{"code": "c"}], "context": [{"text": "t"}], "input": {"a": null}}`,
			`{"audit":[{"code":"c"}],"context":[{"text":"t"}],"decision":"ask","input":{"a":null},"output":"o","reason":"r"}`, "",
		},
		{"an unknown key", "tool.pre", `{"decisio": "ask"}`, "", `decisio: this property does not exist (did you mean "decision"?)`},
		{"an unknown key below", "tool.pre", `{"context": [{"text": "a", "texts": 1}]}`, "", "/context/0/texts"},
		{"a key twice", "tool.pre", `{"reason": "a", "reason": "b"}`, "", `the key "reason" occurs twice`},
		{"null", "tool.pre", `{"reason": null}`, "", `"reason" is null`},
		{"null for a synonym", "tool.pre", `{"modified": null}`, "", `"modified" is null`},
		{"a wrong type", "tool.pre", `{"output": 3}`, "", "/output"},
		{"a wrong type of the decision", "tool.pre", `{"decision": true}`, "", `"decision" is not a text`},
		{"a wrong type of a synonym", "tool.pre", `{"blocked": "yes"}`, "", `"blocked" is neither true nor false`},
		{"a decision in capitals", "tool.pre", `{"decision": "DENY"}`, "", `the decision "DENY" is unknown`},
		{"a key in capitals", "tool.pre", `{"Decision": "deny"}`, "", "Decision"},

		{"a denial with an unknown key beside it", "tool.pre", `{"decision": "deny", "reason": "no", "reasn": 1}`, `{"decision":"deny","reason":"no"}`, ""},
		{"a denial twice", "tool.pre", `{"decision": "deny", "decision": "pass"}`, `{"decision":"deny","reason":""}`, ""},
		{"a denial after a pass", "tool.pre", `{"decision": "pass", "decision": "deny"}`, `{"decision":"deny","reason":""}`, ""},
		{"a denial with a reason of a wrong type", "tool.pre", `{"decision": "deny", "reason": 7}`, `{"decision":"deny","reason":""}`, ""},
		{"a denial with null beside it", "tool.pre", `{"decision": "deny", "output": null}`, `{"decision":"deny","reason":""}`, ""},
		{"a halt with a fault beside it", "tool.pre", `{"decision": "halt", "x": 1}`, `{"decision":"halt","reason":""}`, ""},
		{"a synonym of a denial with a fault beside it", "tool.pre", `{"continue": false, "x": 1}`, `{"decision":"deny","reason":""}`, ""},
		{"an ask with a fault beside it is no denial", "tool.pre", `{"decision": "ask", "x": 1}`, "", "/x"},

		{"continue false", "tool.pre", `{"continue": false, "reason": "r"}`, `{"decision":"deny","reason":"r"}`, ""},
		{"continue true", "tool.pre", `{"continue": true}`, "{}", ""},
		{"blocked true", "tool.pre", `{"blocked": true}`, deny, ""},
		{"blocked false", "tool.pre", `{"blocked": false}`, "{}", ""},
		{"synonyms that agree", "tool.pre", `{"decision": "deny", "continue": false, "blocked": true}`, deny, ""},
		{"a halt that is blocked too", "tool.pre", `{"decision": "halt", "blocked": true}`, `{"decision":"halt"}`, ""},
		{"an ask that continues", "tool.pre", `{"decision": "ask", "continue": true}`, `{"decision":"ask"}`, ""},
		{"a pass that is blocked disagrees, and denies", "tool.pre", `{"decision": "pass", "blocked": true}`, `{"decision":"deny","reason":""}`, ""},
		{"a denial that continues disagrees, and denies", "tool.pre", `{"decision": "deny", "continue": true}`, `{"decision":"deny","reason":""}`, ""},
		{"blocked, and not, disagrees, and denies", "tool.pre", `{"blocked": true, "continue": true}`, `{"decision":"deny","reason":""}`, ""},
		{"additionalContext", "tool.pre", `{"additionalContext": [{"text": "t"}]}`, `{"context":[{"text":"t"}]}`, ""},
		{"additionalContext as a text", "tool.pre", `{"additionalContext": "t"}`, `{"context":[{"text":"t"}]}`, ""},
		{"context twice, alike", "tool.pre", `{"context": [{"text": "t"}], "additionalContext": "t"}`, `{"context":[{"text":"t"}]}`, ""},
		{"context twice, not alike", "tool.pre", `{"context": [{"text": "t"}], "additionalContext": "u"}`, "", "disagree"},
		{"modified", "tool.pre", `{"modified": {"path": "a"}}`, `{"input":{"path":"a"}}`, ""},
		{"modified and input that disagree", "tool.pre", `{"modified": {"path": "a"}, "input": {"path": "b"}}`, "", "disagree"},
		{"modified where there is no input", "tool.post", `{"modified": {"path": "a"}}`, "", `has no key "modified"`},

		{"continue at turn.stop", "turn.stop", `{"decision": "continue", "reason": "more"}`, `{"decision":"continue","reason":"more"}`, ""},
		{"a synonym at turn.stop", "turn.stop", `{"continue": false}`, "", `"continue" is not allowed at turn.stop`},
		{"blocked at turn.stop", "turn.stop", `{"blocked": true}`, "", `"blocked" is not allowed at turn.stop`},
		{"a denial of the stop", "turn.stop", `{"decision": "deny", "reason": "more"}`, `{"decision":"continue","reason":"more"}`, ""},
		{"a halt at turn.stop", "turn.stop", `{"decision": "halt"}`, "", `not allowed at turn.stop: write one of pass, continue`},
		{"continue elsewhere", "tool.pre", `{"decision": "continue"}`, "", "works only at turn.stop"},
		{"allow", "approval.request", `{"decision": "allow", "reason": "r"}`, `{"decision":"allow","reason":"r"}`, ""},
		{"allow elsewhere", "tool.pre", `{"decision": "allow"}`, "", `at tool.pre write "pass"`},
		{"ask where nobody can be asked", "subagent.start", `{"decision": "ask"}`, "", "not allowed at subagent.start: write one of pass, deny"},
		{"a halt where there is none is a denial", "subagent.start", `{"decision": "halt", "reason": "r"}`, `{"decision":"deny","reason":"r"}`, ""},
		{"a prompt", "user.prompt.submit", `{"prompt": "p", "answer": "a"}`, `{"answer":"a","prompt":"p"}`, ""},
		{"a result", "tool.post", `{"result": "r"}`, `{"result":"r"}`, ""},
		{"context at an observe phase", "model.post", `{"context": [{"text": "t"}]}`, "", "/context"},
		{"a reason by itself", "tool.post", `{"reason": "r"}`, "{}", ""},
		{"pass at a phase that cannot block", "tool.post", `{"decision": "pass", "reason": "r", "output": "o"}`, `{"output":"o"}`, ""},
		{
			"a block at a phase that cannot block", "tool.post", `{"decision": "deny", "reason": "r", "context": [{"text": "t"}]}`,
			`{"audit":[{"code":"block_ignored","message":"the hook answered deny at a phase that cannot block"}],` +
				`"context":[{"text":"t"}],"output":"Hook \"gate\" answered deny at tool.post, a phase that cannot block: r"}`, "",
		},
		{
			"a block with an output beside it", "model.post", `{"blocked": true, "reason": "r", "output": "o"}`,
			`{"audit":[{"code":"block_ignored","message":"the hook answered deny at a phase that cannot block"}],` +
				`"output":"o\nHook \"gate\" answered deny at model.post, a phase that cannot block: r"}`, "",
		},
		{"a block with an output that is no text", "model.post", `{"blocked": true, "reason": "r", "output": 3}`, "", "/output"},
		{
			"a block at an observe phase", "model.post", `{"blocked": true, "reason": "r"}`,
			`{"audit":[{"code":"block_ignored","message":"the hook answered deny at a phase that cannot block"}],` +
				`"output":"Hook \"gate\" answered deny at model.post, a phase that cannot block: r"}`, "",
		},

		{"text", "tool.pre", "looks good\nto me\n", `{"output":"looks good\nto me"}`, ""},
		{"text with braces in it", "tool.pre", "used f() { x } and a[0]", `{"output":"used f() { x } and a[0]"}`, ""},
		{"text in colour", "tool.pre", "\x1b[1;32mok\x1b[0m", `{"output":"ok"}`, ""},
		{"a word that is a key", "tool.pre", "my decision: the reason is clear", `{"output":"my decision: the reason is clear"}`, ""},
		{"a debug line in front", "tool.pre", "debug\n{\"decision\": \"ask\"}", "", "mixes JSON and text"},
		{"a debug line behind", "tool.pre", "{\"decision\": \"ask\"}\ndebug", "", "mixes JSON and text"},
		{"two objects", "tool.pre", `{"decision": "ask"}{"decision": "pass"}`, "", "mixes JSON and text"},
		{"JSON that is cut off", "tool.pre", `{"decision": "de`, "", "mixes JSON and text"},
		{"JSON in colour", "tool.pre", "debug\n\x1b[31m{\x1b[0m\"x\": 1}", "", "mixes JSON and text"},
		{"JSON behind a byte order mark", "tool.pre", "\ufeff{\"decision\": \"ask\"}", "", "mixes JSON and text"},
		{"JSON behind what cannot be seen", "tool.pre", "debug\r\u200b\u2060 {x}", "", "mixes JSON and text"},
		{"JSON behind a title that does not end", "tool.pre", "\x1b]0;title\n{\"decision\": \"ask\"}", "", "mixes JSON and text"},
		{"JSON in the line of a debug text", "tool.pre", `debug: {"decision": "ask"}`, "", "text that contains an answer"},
		{"JSON with a synonym in the line", "tool.pre", `answer={"continue":true}`, "", "text that contains an answer"},
		{"JSON in a title", "tool.pre", "\x1b]0;{\"decision\": \"ask\"}\aok", "", "text that contains an answer"},
		{"single quotes", "tool.pre", `result {'decision': 'deny'}`, "", "text that contains an answer"},
		{"spelled otherwise", "tool.pre", `debug: {"\u0064ecision": "ask"}`, "", "text that contains an answer"},
		{"broken by colour", "tool.pre", "debug: {\"deci\x1b[0msion\": \"ask\"}", "", "text that contains an answer"},
		{"no text", "tool.pre", "\xff\xfe{\x00", "", "neither JSON nor text"},

		{"null as a whole", "tool.pre", " null\n", "", ""},
		{"null as a whole, in colour", "tool.pre", "\x1b[1;30mnull\x1b[0m\n", "", ""},
		{"null behind a byte order mark", "tool.pre", "\ufeffnull", "", ""},
		{"null at an observe phase", "model.post", "null", "", ""},
		{"a number", "tool.pre", "42", "", "not an object"},
		{"a number in colour", "tool.pre", "\x1b[31m42\x1b[0m", "", "not an object"},
		{"a truth value", "tool.pre", "true\n", "", "not an object"},
		{"a text in quotes", "tool.pre", `"looks good"`, "", "not an object"},
		{"quoted once more", "tool.pre", `"{\"decision\": \"deny\"}"`, "", "not an object"},
		{"a list", "tool.pre", `["pass"]`, "", "not an object"},
		{"an empty list", "tool.pre", `[]`, "", "not an object"},
		{"a number at an observe phase", "model.post", "-1.5e3", "", "not an object"},
		{"several values are text", "tool.pre", "42 of 43", `{"output":"42 of 43"}`, ""},

		{"context as a text", "tool.pre", `{"context": "t"}`, `{"context":[{"text":"t"}]}`, ""},
		{"context as a list of texts", "tool.pre", `{"context": ["t", "u"]}`, `{"context":[{"text":"t"},{"text":"u"}]}`, ""},
		{"context as a list of both", "tool.pre", `{"context": ["t", {"text": "u"}]}`, `{"context":[{"text":"t"},{"text":"u"}]}`, ""},
		{"context as a text at turn.stop", "turn.stop", `{"context": "t"}`, `{"context":[{"text":"t"}]}`, ""},
		{"additionalContext as a list of texts", "session.start", `{"additionalContext": ["t"]}`, `{"context":[{"text":"t"}]}`, ""},
		{"context as a text, and its synonym, alike", "tool.pre", `{"context": "t", "additionalContext": ["t"]}`, `{"context":[{"text":"t"}]}`, ""},
		{"context as a number", "tool.pre", `{"context": 3}`, "", "/context: "},
		{"context with a number in it", "tool.pre", `{"context": ["t", 3]}`, "", "/context/1: "},
		{"context as a text where there is none", "model.post", `{"context": "t"}`, "", "/context"},
		{
			"a block with context as a text at a phase that cannot block", "tool.post", `{"decision": "deny", "context": "t"}`,
			`{"audit":[{"code":"block_ignored","message":"the hook answered deny at a phase that cannot block"}],` +
				`"context":[{"text":"t"}],"output":"Hook \"gate\" answered deny at tool.post, a phase that cannot block: no reason was given"}`, "",
		},

		{"a fault below a synonym quotes it", "tool.pre", `{"additionalContext": [{"texts": 1}]}`, "", "/additionalContext/0/texts"},
		{"a wrong type of a synonym quotes it", "tool.pre", `{"additionalContext": 3}`, "", "/additionalContext: "},
		{"a synonym that disagrees is quoted", "tool.pre", `{"context": "t", "additionalContext": "u"}`, "", `"context" and "additionalContext" disagree`},
		{"a key that disagrees with its synonym is quoted", "tool.pre", `{"modified": {"a": 1}, "input": {"a": 2}}`, "", `"modified" and "input" disagree`},
		{"an ask that disagrees with a synonym, of a phase without it", "tool.post", `{"decision": "ask", "blocked": true}`, "", `"decision" and "blocked" disagree`},
		{"synonyms that disagree, of a phase without a decision", "tool.post", `{"continue": false, "blocked": false}`, "", `"continue" and "blocked" disagree`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			c := codecOf(t, test.phase)
			c.id = "gate"
			got, err := c.read(outputOf([]byte(test.out)), nil)
			if test.fails != "" {
				safe, ok := errors.AsType[*hook.SafeError](err)
				if !ok || safe.Code != codes.OutputInvalid || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("answer %s, err = %v, want hook.output_invalid with %q", got, err, test.fails)
				}
				if ok && strings.Contains(safe.Message, `"`) {
					t.Errorf("the message that is stored quotes the output: %s", safe.Message)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if err := c.wire.CheckAnswer(got); err != nil {
				t.Errorf("the phase does not take the answer: %v", err)
			}
		})
	}
}

// SPEC C-04
func TestReplyBlocksAtEveryPhase(t *testing.T) {
	t.Parallel()
	for _, p := range belay.Phases() {
		c := codecOf(t, p.Name())
		answer, err := c.block("because")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.wire.CheckAnswer(answer); err != nil {
			t.Errorf("%s does not take %s: %v", p.Name(), answer, err)
		}
		want := `"decision":"deny"`
		switch {
		case p.Name() == "turn.stop":
			want = `"decision":"continue"`
		case p.Info().Kind != hook.Gate:
			want = "block_ignored"
		}
		if !strings.Contains(string(answer), want) || !strings.Contains(string(answer), "because") {
			t.Errorf("%s: %s, want %s", p.Name(), answer, want)
		}
	}
}
