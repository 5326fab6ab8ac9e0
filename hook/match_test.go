package hook_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// SPEC H-02
func TestMatch(t *testing.T) {
	t.Parallel()
	short := hook.When("the text is short", func(c call) bool { return len(c.text) < 4 })
	for _, test := range []struct {
		rule  string
		match hook.Match
		in    call
		want  bool
	}{
		{"no match matches everything", hook.Match{}, write, true},
		{"an exact name", hook.Match{Tools: []string{"write"}}, write, true},
		{"another name", hook.Match{Tools: []string{"read"}}, write, false},
		{"a name is not a prefix", hook.Match{Tools: []string{"writ"}}, write, false},
		{"a name is not a suffix", hook.Match{Tools: []string{"rite"}}, write, false},
		{"one of several", hook.Match{Tools: []string{"read", "write"}}, write, true},
		{"* matches every name", hook.Match{Tools: []string{"*"}}, write, true},
		{"* also matches an empty name", hook.Match{Tools: []string{"*"}}, call{}, true},
		{"a glob", hook.Match{Tools: []string{"w*e"}}, write, true},
		{"a glob that does not fit", hook.Match{Tools: []string{"w*f"}}, write, false},
		{"? matches one character", hook.Match{Tools: []string{"writ?"}}, write, true},
		{"? does not match an empty text", hook.Match{Tools: []string{"write?"}}, write, false},
		{"? matches a character, not a byte", hook.Match{Tools: []string{"gr?n"}}, call{tool: "grün"}, true},
		{"a class", hook.Match{Tools: []string{"[a-w]rite"}}, write, true},
		{"a class that does not match", hook.Match{Tools: []string{"[x-z]rite"}}, write, false},
		{"a negated class", hook.Match{Tools: []string{"[!x-z]rite"}}, write, true},
		{"a backslash escapes the star", hook.Match{Tools: []string{`w\*`}}, call{tool: "w*"}, true},
		{"an escaped star is not a glob", hook.Match{Tools: []string{`w\*`}}, write, false},
		{"a name that looks like a glob matches itself", hook.Match{Tools: []string{"a[b]"}}, call{tool: "a[b]"}, true},
		{"names are case sensitive", hook.Match{Tools: []string{"Write"}}, write, false},
		{"the agent", hook.Match{Agents: []string{"main"}}, write, true},
		{"every field must match", hook.Match{Tools: []string{"write"}, Agents: []string{"child"}}, write, false},
		{"further labels", hook.Match{Labels: map[string][]string{"lang": {"he*"}}}, write, true},
		{"further labels must match too", hook.Match{Labels: map[string][]string{"lang": {"go"}, "tool": {"write"}}}, write, false},
		{"a condition that holds", hook.Match{When: short}, call{text: "hi"}, true},
		{"a condition that does not", hook.Match{When: short}, write, false},
		{"labels and condition", hook.Match{Tools: []string{"read"}, When: short}, call{text: "hi"}, false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			for _, how := range []hook.Options{{}, {Concurrent: true}} { // Inline and overlapping handlers must both check the match.
				how.Match = test.match
				rt := newRuntime(t, nil, gatePhase.On("a", says(ask("matched")), &how))
				s := snapshot(t, rt)
				out := dispatch(t, gatePhase, s, test.in)
				equal(t, "matched", out.By == "a", test.want)
				equal(t, "recorded", len(s.Take()) == 1, test.want)
			}
		})
	}
}

// SPEC H-03
func TestBadMatchIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, field string
		match       hook.Match
	}{
		{"an empty list matches nothing and is a mistake", "match.tools", hook.Match{Tools: []string{}}},
		{"an empty pattern", "match.agents", hook.Match{Agents: []string{"main", ""}}},
		{"a class that is not closed", "match.tools", hook.Match{Tools: []string{"[a-z"}}},
		{"an empty class", "match.tools", hook.Match{Tools: []string{"[]"}}},
		{"a backslash before nothing", "match.tools", hook.Match{Tools: []string{`a\`}}},
		{"a label that the phase does not have", "match.labels.color", hook.Match{Labels: map[string][]string{"color": {"red"}}}},
		{"a condition without a function", "match.when", hook.Match{When: hook.When[call]("nothing", nil)}},
		{"a condition on another input", "match.when", hook.Match{When: hook.When("other", func(string) bool { return true })}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			_, err := newRuntime(t, nil).Install(gateWith(hook.Options{Match: test.match}))
			problem, ok := errors.AsType[*hook.OptionError](err)
			if !ok || problem.Field != test.field || problem.Subscription != "a" {
				t.Errorf("got %v, want an *OptionError about %s", err, test.field)
			}
		})
	}
}

// A broken condition must not open a gate. At other phases, the handler must not run with
// an input that may not match.
//
// SPEC H-02, H-10
func TestBrokenConditionIsAMatchAtAGate(t *testing.T) {
	t.Parallel()
	broken := hook.Match{When: hook.When("breaks", func(c call) bool { return c.text[100] == 'x' })}
	for rule, o := range map[string]hook.Options{"inline": {Match: broken}, "overlapping": {Match: broken, Concurrent: true}} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			rt := newRuntime(t, nil,
				gatePhase.On("a", says(deny("no")), &o), collectPhase.On("a", says(note("x")), &o))
			s := snapshot(t, rt)
			gate := dispatch(t, gatePhase, s, write)
			equal(t, "verdict", gate.Output.Severity, hook.SeverityDeny)
			same(t, "diagnostics of the gate", codesOf(gate.Diagnostics), []codes.Code{codes.MatchFailed})
			collect := dispatch(t, collectPhase, s, write)
			same(t, "notes", collect.Output.Notes, nil)
			same(t, "diagnostics of the collect phase", codesOf(collect.Diagnostics), []codes.Code{codes.MatchFailed})
		})
	}
}

// FuzzGlob compares globMatch with a slow reference.
//
// SPEC H-02, H-03
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"*", ""},
		{"a*b*c", "aXbYc"},
		{"a?c", "aäc"},
		{"[a-c]x", "bx"},
		{"[!a-c]x", "dx"},
		{"[^a]", "b"},
		{"[]a]", "]"},
		{"[a-]", "-"},
		{`[\]]`, "]"},
		{`\[a`, "[a"},
		{"[a", "[a"},
		{`x\`, `x\`},
		{"**a**", "bab"},
		{"[", "["},
		{"[!]", "!"},
		{"\xff", "\xfe"},
		{"a[b]", "a[b]"},
		{"*a*a*a*a*b", "aaaaaaaaaaaa"},
		{`[\a-c]`, "b"},
		{"[--a]", "A"},
		{"[c-a]", "b"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, value string) {
		if len(pattern) > 24 || len(value) > 24 {
			return // The reference is too slow for long inputs.
		}
		tokens, ok := parseGlob([]rune(pattern))
		rt := newRuntime(t, nil)
		_, err := rt.Install(gatePhase.On("a", says(ask("matched")), &hook.Options{Match: hook.Match{Tools: []string{pattern}}}))
		if valid := ok && pattern != ""; (err == nil) != valid {
			t.Fatalf("install with pattern %q: got %v, want it accepted: %t", pattern, err, valid)
		}
		if err != nil {
			return
		}
		got := dispatch(t, gatePhase, snapshot(t, rt), call{tool: value}).By == "a"
		if want := pattern == value || fits(tokens, []rune(value)); got != want {
			t.Errorf("pattern %q, value %q: match is %t, want %t", pattern, value, got, want)
		}
	})
}

// globToken matches one character or, if star is set, any number of them.
type globToken struct {
	star bool
	one  func(rune) bool
}

// parseGlob reads a pattern. ok is false if a class is not closed, a range is reversed, or
// nothing follows a backslash.
func parseGlob(p []rune) (tokens []globToken, ok bool) {
	for len(p) > 0 {
		c := p[0]
		p = p[1:]
		switch c {
		case '*':
			tokens = append(tokens, globToken{star: true})
		case '?':
			tokens = append(tokens, globToken{one: func(rune) bool { return true }})
		case '\\':
			if len(p) == 0 {
				return nil, false
			}
			want := p[0]
			tokens = append(tokens, globToken{one: func(r rune) bool { return r == want }})
			p = p[1:]
		case '[':
			var one func(rune) bool
			if one, p, ok = parseClass(p); !ok {
				return nil, false
			}
			tokens = append(tokens, globToken{one: one})
		default:
			tokens = append(tokens, globToken{one: func(r rune) bool { return r == c }})
		}
	}
	return tokens, true
}

// parseClass reads a class after its opening bracket. A ] in the first position is a member
// of the class.
func parseClass(p []rune) (one func(rune) bool, rest []rune, ok bool) {
	negated := len(p) > 0 && strings.ContainsRune("!^", p[0])
	if negated {
		p = p[1:]
	}
	type member struct {
		r       rune
		escaped bool
	}
	var members []member
	for {
		if len(p) == 0 {
			return nil, nil, false
		}
		c := p[0]
		p = p[1:]
		if c == ']' && len(members) > 0 {
			break
		}
		if c == '\\' {
			if len(p) == 0 {
				return nil, nil, false
			}
			members = append(members, member{p[0], true})
			p = p[1:]
			continue
		}
		members = append(members, member{c, false})
	}
	for i := 0; i+2 < len(members); i++ { // A range must not be reversed.
		if members[i+1] == (member{'-', false}) {
			if members[i].r > members[i+2].r {
				return nil, nil, false
			}
			i += 2
		}
	}
	return func(r rune) bool {
		for i := 0; i < len(members); i++ {
			low, high := members[i].r, members[i].r
			if i+2 < len(members) && members[i+1] == (member{'-', false}) {
				high = members[i+2].r
				i += 2
			}
			if low <= r && r <= high {
				return !negated
			}
		}
		return negated
	}, p, true
}

// fits reports whether the tokens match the value. It tries every possibility.
func fits(tokens []globToken, value []rune) bool {
	switch {
	case len(tokens) == 0:
		return len(value) == 0
	case tokens[0].star:
		return fits(tokens[1:], value) || len(value) > 0 && fits(tokens, value[1:])
	default:
		return len(value) > 0 && tokens[0].one(value[0]) && fits(tokens[1:], value[1:])
	}
}
