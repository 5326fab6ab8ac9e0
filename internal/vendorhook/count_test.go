package vendorhook_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/internal/vendorhook"
)

// generator writes a hook file with every oddity that we know. It writes one line for each
// hook, so that a note about the hook has the line.
type generator struct {
	*rand.Rand
	vendor  dialect.Vendor
	project string

	text strings.Builder
	line int
	// hooks are the lines of the hooks that the file has. A note about one of them has its
	// line, or the line of its entry or its event.
	hooks []place
}

type place struct{ hook, entry, event int }

func (g *generator) add(text string) int {
	g.text.WriteString(text + "\n")
	g.line++
	return g.line
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// handler returns a hook.
func (g *generator) handler() string {
	odd := []string{
		`{"type":"command","command":%q}`, `{"command":%q}`, `{"type":"command","command":%q,"timeout":5}`, `{"type":"command","command":%q,"timeout":-1}`,
		`{"type":"command","command":%q,"async":true}`, `{"type":"command","command":%q,"asyncRewake":true}`, `{"type":"command","command":%q,"once":true}`,
		`{"type":"command","command":%q,"if":"Bash(git *)"}`, `{"type":"command","command":%q,"if":"Bash("}`, `{"type":"command","command":%q,"shell":"fish"}`,
		`{"type":"command","command":%q,"args":["a"]}`, `{"type":"command","command":%q,"args":{}}`, `{"type":"command","command":%q,"colour":[1]}`,
		`{"type":"command","command":%q,"onFailure":"block","async":true}`,
		`{"type":"prompt","prompt":%q}`, `{"type":"agent","prompt":%q}`, `{"type":"http","url":%q}`, `{"type":"mcp_tool","tool":%q}`, `{"type":[%q]}`, `{"type":7,"command":%q}`,
		`{"type":"command","prompt":%q}`, `{"type":"command","command":["x",%q]}`, `{"type":"command","command":"","statusMessage":%q}`, `{"x":%q}`,
		`%q`, `[%q]`,
	}
	return fmt.Sprintf(pick(g, odd...), fmt.Sprintf("run %d", g.IntN(4))) // equal commands occur
}

// event writes an event with entries.
func (g *generator) event(name string, last bool) {
	comma := map[bool]string{false: ",", true: ""}
	event := g.add(fmt.Sprintf("%q:", name))
	if g.IntN(12) == 0 && slices.ContainsFunc(g.vendor.Events(), func(e dialect.Event) bool { return e.Name == name }) {
		g.add(pick(g, `{"hooks":[]}`, `"x"`, `3`, `null`) + comma[last])
		g.hooks = append(g.hooks, place{event, event, event})
		return
	}
	g.add("[")
	entries := g.IntN(4)
	for i := range entries {
		end := comma[i == entries-1]
		matcher := pick(g, "", `"matcher":"Bash",`, `"matcher":"*",`, `"matcher":"Write|Nothing",`, `"matcher":"[",`, `"matcher":["Bash"],`, `"matcher":5,`)
		switch g.IntN(8) {
		case 0:
			line := g.add(pick(g, `"x"`, `7`, `[]`, `{"type":"command","command":"direct"}`, `{"hooks":{"type":"command","command":"x"}}`, `{"hooks":"x"}`) + end)
			g.hooks = append(g.hooks, place{line, line, event})
		case 1:
			g.add(pick(g, `{}`, `{"matcher":"Bash"}`, `{"hooks":[]}`) + end)
		default:
			entry := g.add("{" + matcher)
			g.add(`"hooks":[`)
			hooks := g.IntN(4)
			for j := range hooks {
				g.hooks = append(g.hooks, place{g.add(g.handler() + comma[j == hooks-1]), entry, event})
			}
			g.add("]}" + end)
		}
	}
	g.add("]" + comma[last])
}

// SPEC B-02: each hook of a file is used, refused with a note, or switched off. None is missing.
func TestEachHookIsUsedOrRefused(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	for _, vendor := range []dialect.Vendor{dialect.ClaudeCode, dialect.Codex, dialect.GeminiCLI} {
		var names []string
		for _, e := range vendor.Events() {
			names = append(names, e.Name)
		}
		names = append(names, "PreToolUsed", "before_tool", "Nothing", "")
		for seed := range uint64(400) {
			g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), vendor: vendor, project: project}
			off := g.IntN(10) == 0
			g.add("{")
			if off {
				g.add(`"disableAllHooks": true,`)
			}
			g.add(`"hooks": {`)
			chosen := slices.Clone(names)
			g.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
			chosen = chosen[:1+g.IntN(5)]
			for i, name := range chosen {
				g.event(name, i == len(chosen)-1)
			}
			g.add("}}")
			g.check(t, seed, off)
		}
	}
}

func (g *generator) check(t *testing.T, seed uint64, off bool) {
	t.Helper()
	text := g.text.String()
	if !json.Valid([]byte(text)) {
		t.Fatalf("the generator wrote no JSON:\n%s", text)
	}
	r, err := vendorhook.Read(profile(g.vendor), &vendorhook.Options{Project: g.project}, vendorhook.File{Path: "settings.json", Text: []byte(text)})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	noted := make(map[int]bool)
	for _, n := range r.Notes {
		noted[n.Line] = noted[n.Line] || n.Warning
	}
	used := make(map[int]bool) // lines; equal commands have the line of the first
	handlers := 0
	for _, d := range r.Hooks {
		used[d.Line] = true
		handlers += vendorhook.Handlers(d)
	}
	switch {
	case r.Declared != len(g.hooks), r.Used+r.Refused+r.Off != r.Declared, off && r.Used > 0, handlers != r.Used, len(r.Hooks) > r.Used:
		t.Fatalf("%s, seed %d: the file has %d hooks. Declared %d, used %d (%d, in %d), refused %d, off %d\n%s", g.vendor, seed, len(g.hooks), r.Declared, r.Used, handlers, len(r.Hooks), r.Refused, r.Off, text)
	case off:
		return
	}
	unexplained := 0
	for _, at := range g.hooks {
		if !used[at.hook] && !noted[at.hook] && !noted[at.entry] && !noted[at.event] {
			unexplained++
		}
	}
	if merged := r.Used - len(r.Hooks); unexplained > merged {
		t.Fatalf("%s, seed %d: %d hooks are neither used nor in a note, and only %d are equal to another\n%s\n%+v", g.vendor, seed, unexplained, merged, text, r.Notes)
	}
}

// The fingerprints of imported hooks stay the same: older files must still replace their originals.
func TestTheFingerprintOfAHookStays(t *testing.T) {
	t.Parallel()
	from := declare.Dialect{Agent: dialect.ClaudeCode, Event: "PreToolUse", Matcher: "Bash"}
	if got := vendorhook.Fingerprint(&from, []string{"bash", "-c", "x"}); got != "c1413ab9379d" {
		t.Errorf("the fingerprint is %s", got)
	}
}
