package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/vendorhook"
)

// hooks writes the hooks of the agent as a hook file. Their commands stay as they are, and
// the scripts stay where they are: the key dialect says what the commands read and answer.
func (im *importer) hooks() {
	place, hooks, err := assembly.VendorHooks(im.settings, im.Agent, im.User)
	for _, fault := range declare.Faults(err) {
		im.notef(fault.File, "line %d: not translated: %s", fault.Line, fault.Message)
	}
	if place == nil {
		return
	}
	for _, n := range place.Notes {
		im.notef(n.File, "line %d: %s", n.Line, n.Message)
	}
	var b strings.Builder
	for _, d := range hooks {
		sources := vendorhook.Source(d)
		if len(sources) == 0 {
			im.notef(place.Files[0], "permissionDecision allow: in Belay's own files a hook cannot skip a question. Write a rule for these calls into permit.rules of your own belay.yaml")
			continue
		}
		im.plan.Read++
		if len(sources) > 1 {
			im.notef(d.File, "line %d: its command has several conditions (if), so it may run more than once for a call", d.Line)
		}
		for i := range sources {
			id := fmt.Sprintf("%s-%s", im.Agent, d.ID)
			if i > 0 {
				id += fmt.Sprintf("-%d", i+1)
			}
			im.hook(&b, id, d, &sources[i])
		}
	}
	if b.Len() == 0 {
		return
	}
	text := fmt.Sprintf("# Hooks of %s, written by `belay import`. Their commands run in the project, as in %s.\nhooks:\n", im.Agent.Title(), im.Agent.Title()) + b.String()
	file := filepath.Join(im.target, "hooks", string(im.Agent)+".yaml")
	if _, err := declare.Parse(file, []byte(text)); err != nil { // should not happen: a broken file would stop every turn
		im.notef(file, "not written, because it would have mistakes: %v", err)
		return
	}
	im.put(file, []byte(text), false)
}

// hook writes one hook.
func (im *importer) hook(b *strings.Builder, id string, d *declare.Declaration, from *declare.Dialect) {
	o := &d.Options
	key := func(name, value string) { fmt.Fprintf(b, "    %s: %s\n", name, value) }
	fmt.Fprintf(b, "  - id: %s  # %s:%d\n", id, filepath.ToSlash(im.shown(d.File)), d.Line)
	if o.Description != "" && o.Description != d.Argv[len(d.Argv)-1] {
		key("description", quoted(o.Description))
	}
	key("phase", d.Phase)
	what := fmt.Sprintf("agent: %s, event: %s", from.Agent, from.Event)
	if from.Matcher != "" {
		what += ", matcher: " + quoted(from.Matcher)
	}
	if from.If != "" {
		what += ", if: " + quoted(from.If)
	}
	if from.Async {
		what += ", async: true"
	}
	if from.Rewake {
		what += ", rewake: true"
	}
	if from.RewakeMessage != "" {
		what += ", rewake_message: " + quoted(from.RewakeMessage)
	}
	what += ", original: " + quoted(vendorhook.Fingerprint(from, d.Argv))
	key("dialect", "{"+what+"}")
	words := make([]string, len(d.Argv))
	for i, word := range d.Argv {
		words[i] = quoted(word)
	}
	key("command", "["+strings.Join(words, ", ")+"]")
	key("timeout", strings.Replace(o.Timeout.String(), "m0s", "m", 1))
	switch {
	case o.Failure == hook.Open && closesByDefault(d.Phase):
		key("failure", "open")
	case o.Failure == hook.Closed:
		key("failure", "closed")
	}
	if o.Execution == hook.FireAndRecord && !from.Async {
		key("execution", "fire_and_record")
	}
	if o.Concurrent {
		key("concurrent", "true")
	}
	if o.NoInherit {
		key("inherit", "false")
	}
	if o.Capabilities != 0 && !from.Async {
		key("capabilities", "["+strings.Join(o.Capabilities.Names(), ", ")+"]")
	}
	if text := scriptText(d.Scripts); d.Phase == belay.ToolPre.Name() && o.Capabilities == 0 && strings.Contains(text, "updatedInput") {
		im.notef(d.File, "line %d: its script changes inputs. To let it, add capabilities: [block, ask, context, audit, rewrite_input] to the hook %s, and trust the directory with --grant rewrite_input", d.Line, id)
	}
}

// closesByDefault reports whether a failed hook of a phase denies by default.
func closesByDefault(phase string) bool {
	for _, p := range belay.Phases() {
		if p.Name() == phase {
			return p.Info().Kind == hook.Gate && p.Info().Failure == hook.Closed
		}
	}
	return false
}

// scriptText returns the text of scripts, as far as it can be read.
func scriptText(files []string) string {
	var b bytes.Buffer
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Size() < mostText {
			text, _ := os.ReadFile(file) // a script that cannot be read has no text
			b.Write(text)
		}
	}
	return b.String()
}

// quoted returns a text in double quotes, as YAML and JSON have it.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) //nolint:errchkjson // a string can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}
