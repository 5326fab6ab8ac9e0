package repotest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// pinnedAction matches a line that uses an action at a full commit, with the version as a comment. The owner of an action
// can move a tag to other code. A commit always means the same code.
var pinnedAction = regexp.MustCompile(`^\s*(?:- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// The workflows of the public forge run only actions of a fixed commit, and get no right that they do not name: what a
// workflow can do is read, and a job that needs more says so itself.
//
// SPEC Q-01
func TestWorkflows(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob(".github/workflows/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("no workflows: %v, %v", names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range workflowProblems(string(text)) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// A release is built by one patch release of Go, on the machine of the forge and on that of the maintainer. The version in go.mod is
// the oldest that works, without the corrections since.
//
// SPEC Q-01
func TestReleaseIsBuiltByOneGo(t *testing.T) {
	t.Parallel()
	workflow, err := os.ReadFile(".github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("docs/releasing.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ +go-version: (1\.\d+\.[1-9]\d*) #`).FindSubmatch(workflow)
	if found == nil {
		t.Fatal("release.yml names no patch release of Go as go-version")
	}
	if !strings.Contains(string(list), " go"+string(found[1])+".\n") {
		t.Errorf("release.yml builds with Go %s, and the check-list of docs/releasing.md names another version", found[1])
	}
}

// workflowProblems returns what is wrong in a workflow file.
func workflowProblems(text string) []string {
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return []string{err.Error()}
	}
	var problems []string
	granted, ok := doc["permissions"].(map[string]any)
	if !ok {
		problems = append(problems, "write permissions at the top as a list, such as contents: read")
	}
	for scope, right := range granted {
		if right != "read" && right != "none" {
			problems = append(problems, fmt.Sprintf("permissions: %s: %v is for the job that needs it, not for all jobs", scope, right))
		}
	}
	pinned := 0
	for line := range strings.Lines(text) {
		if pinnedAction.MatchString(strings.TrimRight(line, "\r\n")) {
			pinned++
		}
	}
	if used := actions(doc); len(used) != pinned {
		problems = append(problems, fmt.Sprintf("%d of the actions %q are pinned as owner/name@COMMIT # v1.2.3, with all 40 digits", pinned, used))
	}
	return problems
}

// actions returns the value of every key uses in a YAML document, wherever it is.
func actions(node any) []string {
	var found []string
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			switch {
			case key == "uses":
				found = append(found, fmt.Sprint(value))
			case key == "permissions" && value == "write-all":
				found = append(found, "permissions: write-all") // nothing needs all rights, and nothing can pin this
			default:
				found = append(found, actions(value)...)
			}
		}
	case []any:
		for _, value := range node {
			found = append(found, actions(value)...)
		}
	}
	slices.Sort(found)
	return found
}

func TestWorkflowsRule(t *testing.T) {
	t.Parallel()
	const (
		commit = "0123456789abcdef0123456789abcdef01234567"
		top    = "permissions:\n  contents: read\njobs:\n  test:\n    steps:\n"
	)
	for _, test := range []struct {
		rule, text string
		problem    string // part of the only problem; "" if there is none
	}{
		{"a commit with its version is right", top + "      - uses: a/b@" + commit + " # v1.2.3\n", ""},
		{"a job may ask for more", "permissions: {}\njobs:\n  a:\n    permissions:\n      contents: write\n", ""},
		{"a tag is refused", top + "      - uses: a/b@v1\n", "0 of the actions"},
		{"half a commit is refused", top + "      - uses: a/b@" + commit[:12] + " # v1.2.3\n", "0 of the actions"},
		{"a commit without its version is refused", top + "      - uses: a/b@" + commit + "\n", "0 of the actions"},
		{"another way to write the key is refused", top + "      - {\"uses\": a/b@main}\n", "0 of the actions"},
		{"permissions are named", "jobs:\n  a:\n    steps: []\n", "write permissions at the top"},
		{"not all jobs may write", "permissions:\n  contents: write\njobs: {}\n", "contents: write is for the job"},
		{"no job gets all rights", "permissions: {}\njobs:\n  a:\n    permissions: write-all\n", "permissions: write-all"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(workflowProblems(test.text), "\n")
			if (got == "") != (test.problem == "") || !strings.Contains(got, test.problem) {
				t.Errorf("problems %q, want %q", got, test.problem)
			}
		})
	}
}
