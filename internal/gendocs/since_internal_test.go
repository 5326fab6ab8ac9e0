package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay/serve"
)

// newRepository returns a repository with one package, the HTTP API of today, and a first commit.
func newRepository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	put(t, root, "go.mod", "module example.com/all\n\ngo 1.26\n")
	put(t, root, "CHANGELOG.md", "# Changelog\n\n## Unreleased\n")
	put(t, root, "one/one.go", package1)
	api, err := serve.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, "serve/openapi.json", string(api))
	e, err := readExported(root)
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, "docs/reference/exported.txt", string(e.list()))
	do(t, root, "init", "-q")
	commit(t, root)
	return root
}

// do runs git in a repository.
func do(t *testing.T, root string, args ...string) {
	t.Helper()
	if _, err := git(t.Context(), root, args...); err != nil {
		t.Fatal(err)
	}
}

// commit commits all that is there.
func commit(t *testing.T, root string) {
	t.Helper()
	do(t, root, "add", "--all")
	do(t, root, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "change")
}

// The comparison is with the last version before HEAD, also if HEAD has a tag. Candidates are no versions. Where the tag may only be
// missing from the clone, the check fails: it must not look as if nothing had changed.
//
// SPEC Q-03
func TestLastRelease(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	last := func(root, version, want, problem string) {
		t.Helper()
		tag, err := lastRelease(t.Context(), root, version)
		if tag != want || (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("the last release is %q, %v; want %q, %q", tag, err, want, problem)
		}
	}
	last(root, "", "", "")
	do(t, root, "tag", "v0.1.0-rc.1")
	put(t, root, "CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n## v0.1.0, 2 January 2026\n")
	commit(t, root)
	last(root, "v0.1.0", "", "")
	last(root, "", "", "CHANGELOG.md:5 names v0.1.0, which has no tag here")
	do(t, root, "tag", "v0.1.0")
	last(root, "", "", "")
	commit(t, root)
	last(root, "", "v0.1.0", "")
	do(t, root, "tag", "v0.2.0")
	last(root, "v0.2.0", "v0.1.0", "")
	commit(t, root)
	last(root, "", "v0.2.0", "")

	part := filepath.Join(t.TempDir(), "part")
	do(t, root, "clone", "-q", "--depth", "1", "file://"+root, part)
	last(part, "", "", "git fetch --unshallow --tags")
	bare := filepath.Join(t.TempDir(), "bare")
	do(t, root, "clone", "-q", "--no-tags", root, bare)
	last(bare, "", "", "git fetch --tags")
	last(t.TempDir(), "", "", "git rev-parse")
	if err := compare(t.Context(), new(bytes.Buffer), t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "cannot find the last release") {
		t.Errorf("the check of a directory without a repository: %v", err)
	}
}

// What is gone and what has another type, value or key is named. What is new, also a field, is no problem. Before v1 a minor version
// may change names, and no version may take a part of the HTTP API.
//
// SPEC Q-03
func TestCompare(t *testing.T) {
	t.Parallel()
	root := newRepository(t)
	do(t, root, "tag", "v0.1.0")
	compared := func(version string, fails bool, want ...string) {
		t.Helper()
		commit(t, root)
		var out bytes.Buffer
		err := compare(t.Context(), &out, root, version)
		if diff := cmp.Diff(strings.Join(want, "\n"), strings.TrimSpace(out.String())); diff != "" || (err != nil) != fails {
			t.Errorf("with version %q it says %v (-want +got):\n%s", version, err, diff)
		}
	}
	compared("", false)
	put(t, root, "one/one.go", strings.NewReplacer(
		"Size, Depth int", "Size, Depth, Width int", "f func(n int) bool", "f func(n int64) bool", "Allows() bool", "Allows() bool\n\tDenies() bool",
		`= "read"`, `= "reads"`, "depth,omitempty", "depth", "newInput(map", "len(map", "Fields() T", "fields() T", "io.Closer\n}", "io.Closer\n\tPeek()\n}",
	).Replace(package1))
	gone := []string{
		`pkg one, const KindRead Kind = "read"`,
		"pkg one, func (*Options) Each(f func(n int) bool)",
		"pkg one, func (Call) Fields() Kind",
		`pkg one, type Call struct, Depth int json:"depth,omitempty"`,
		"pkg one, type Source interface { Close() error; Next() (int, error) }",
		"pkg one, var Default *Options",
	}
	compared("", true, gone...)
	compared("v0.1.1", true, gone...)
	compared("v0.2.0", false, append(gone, "6 names of v0.1.0 are gone or have another type: v0.2.0 may do that; name each in the changelog")...)
	do(t, root, "checkout", "-q", "v0.1.0")
	put(t, root, "one/one.go", package1)
	var doc map[string]any
	if err := json.Unmarshal([]byte(tree(t, root)["serve/openapi.json"]), &doc); err != nil {
		t.Fatal(err)
	}
	doc["paths"].(map[string]any)["/v1/lost"] = map[string]any{"get": map[string]any{}}
	api, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, "serve/openapi.json", string(api))
	commit(t, root)
	do(t, root, "tag", "v0.2.0")
	compared("v0.3.0", true, "http GET /v1/lost")
}

func TestMayChange(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"": false, "v0.1.0": false, "v0.1.9": false, "v0.2.0": true, "v0.2.0-rc.1": true, "v1.0.0": true, "text": false} {
		if mayChange("v0.1.0", version) != want {
			t.Errorf("%q after v0.1.0: want %t", version, want)
		}
	}
	for version, want := range map[string]bool{"v1.2.4": false, "v1.3.0": false, "v2.0.0": true} {
		if mayChange("v1.2.3", version) != want {
			t.Errorf("%q after v1.2.3: want %t", version, want)
		}
	}
}

const olderAPI = `{"paths": {"/v1/a": {
	"get": {
		"parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer"}}, {"name": "state", "in": "query", "schema": {"type": "string", "enum": ["on", "off"]}}],
		"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}},
	"post": {
		"requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {"text": {"type": "string"}}}}}},
		"responses": {"204": {}}}}},
	"components": {"schemas": {"A": {"type": "object", "required": ["id"], "properties": {
		"id": {"type": "string"},
		"list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
		"by": {"type": "object", "additionalProperties": {"type": "object", "properties": {"m": {"type": "integer"}}}}}}}}}`

// Each part of the API that clients depend on is compared: what they may send, what they must send, and what they get.
//
// SPEC Q-03
func TestLostOperations(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, old, new string
		want           []string
	}{
		{"the same API", "", "", nil},
		{"a new field of a result", `"id": {"type": "string"}`, `"id": {"type": "string"}, "more": {"type": "string"}`, nil},
		{"a new optional parameter", `"parameters": [`, `"parameters": [{"name": "all", "in": "query", "schema": {"type": "boolean"}}, `, nil},
		{"a new optional field that has a required field", `{"text":`, `{"file": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}, "text":`, nil},
		{"a new operation that needs something", `"post": {`, `"put": {"parameters": [{"name": "b", "in": "query", "required": true}]}, "post": {`, nil},
		{"a path that is gone", `/v1/a"`, `/v1/b"`, []string{"http GET /v1/a", "http POST /v1/a"}},
		{"a parameter that is gone", `"limit"`, `"most"`, []string{"http GET /v1/a: query limit integer"}},
		{"a parameter with another type", `{"type": "integer"}}, {"name": "state"`, `{"type": "string"}}, {"name": "state"`, []string{"http GET /v1/a: query limit integer"}},
		{"a value that is gone", `"on", `, ``, []string{`http GET /v1/a: query state may be "on"`}},
		{"a parameter that is required now", `"in": "query", "schema": {"type": "integer"`, `"in": "query", "required": true, "schema": {"type": "integer"`, []string{"http GET /v1/a: query limit is required"}},
		{"a new parameter that is required", `"parameters": [`, `"parameters": [{"name": "all", "in": "query", "required": true, "schema": {"type": "boolean"}}, `, []string{"http GET /v1/a: query all is required"}},
		{"a field of a request that is gone", `{"text": {"type": "string"}}`, `{}`, []string{"http POST /v1/a: application/json.text string"}},
		{"a field of a request that is required now", `"properties": {"text"`, `"required": ["text"], "properties": {"text"`, []string{"http POST /v1/a: application/json.text is required"}},
		{"a body that is required now", `"requestBody": {`, `"requestBody": {"required": true, `, []string{"http POST /v1/a: application/json is required"}},
		{"a result of another kind", `"$ref": "#/components/schemas/A"`, `"type": "string"`, []string{"http GET /v1/a: answers 200 application/json <nil>#/components/schemas/A"}},
		{"a result that is gone", `"204"`, `"202"`, []string{"http POST /v1/a: answers 204"}},
		{"a field of a result that is gone", `"n": {"type": "integer"}`, ``, []string{"schema A.list[].n integer"}},
		{"a field of named values that is gone", `"m": {"type": "integer"}`, ``, []string{"schema A.by.*.m integer"}},
		{"a field of a result that may be missing now", `"required": ["id"], `, ``, []string{"schema A.id is always there"}},
	} {
		newer := strings.Replace(olderAPI, test.old, test.new, 1)
		if test.old != test.new && newer == olderAPI {
			t.Fatalf("%s: nothing was changed", test.rule)
		}
		lost, err := lostOperations([]byte(olderAPI), []byte(newer))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(strings.Join(lost, "\n")+"\n", want+"\n") {
				t.Errorf("%s: %q is not named in %q", test.rule, want, lost)
			}
		}
		if (len(lost) > 0) != (len(test.want) > 0) {
			t.Errorf("%s: it names %q", test.rule, lost)
		}
	}
	if _, err := lostOperations([]byte("text"), []byte(olderAPI)); err == nil {
		t.Error("a document that is no JSON has lost nothing")
	}
	api, err := os.ReadFile(filepath.Join("..", "..", "serve", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := readOperations(api)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"http GET /v1/approvals: query limit integer", "schema Approval.advice.cause string", `http POST /v1/approvals/{approval}/decision: application/json.scope may be "once"`} {
		if !strings.Contains("\n"+strings.Join(all.offers, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("%q is not read from serve/openapi.json", want)
		}
	}
}
