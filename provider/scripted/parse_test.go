package scripted_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	model, err := scripted.Load("testdata/script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := belay.ModelInfo{Name: "scripted/demo", Window: 8000, Price: belay.Price{In: 3, Out: 15, CacheRead: 0.3}}
	if got := model.Info(); got != want {
		t.Errorf("info = %+v, want %+v", got, want)
	}
	question := user("How was the last quarter?")
	req := ask(question)
	fails(t, model, req, belay.ModelInvalid, "testdata/script.yaml:9: step 1:", `does not have the tool "read"`)
	req.Tools = []belay.ToolDeclaration{{Name: "read"}, {Name: "search"}}
	first := answer(t, model, req).response
	said := assistant(first.Parts...)
	var calls []string
	for _, c := range said.Calls() {
		calls = append(calls, c.ID+" "+c.Tool+" "+string(c.Input))
	}
	if diff := cmp.Diff([]string{`call_1 read {"lines":20,"path":"report.md"}`, `call_2 search {"text":"revenue"}`}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	answers := results(
		belay.ResultPart{Tool: "read", Result: belay.Result{Text: "Revenue: 4%"}},
		belay.ResultPart{Tool: "search", Result: belay.Failed("", "no index")},
	)
	req.Messages = []*belay.Message{question, said, answers}
	busy := fails(t, model, req, belay.ModelRateLimited)
	if busy.Status != 429 || busy.RetryAfter != 2*time.Second {
		t.Errorf("fault = %+v, want status 429 and a wait of 2s", busy)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		h := answer(t, model, req)
		if !strings.HasSuffix(textOf(h.response), "searched.\n") || h.response.Usage.CacheRead == 0 {
			t.Errorf("response = %+v, want the last step, and usage with something cached", h.response)
		}
		if got, want := time.Since(start), 300*time.Millisecond+time.Duration(len(h.chunks)-1)*20*time.Millisecond; got != want {
			t.Errorf("the response took %s, want %s", got, want)
		}
	})
	if model.Left() != 0 {
		t.Errorf("%d steps are left, want none", model.Left())
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	t.Parallel()
	if _, err := scripted.Load("testdata/none.yaml"); err == nil || !strings.Contains(err.Error(), "testdata/none.yaml") {
		t.Errorf("error = %v, want the file's name in it", err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule   string
		script string
		check  func(t *testing.T, model *scripted.Model)
	}{
		{"the model is named after the file", "steps: [{text: hi}]", func(t *testing.T, model *scripted.Model) {
			if got := model.Info().Name; got != "scripted/tour" {
				t.Errorf("name = %q, want scripted/tour", got)
			}
		}},
		{"input in quotes is sent as it is", `steps: [{calls: [{tool: write, input: '{"path": "a'}], stop: max_tokens}]`, func(t *testing.T, model *scripted.Model) {
			r := answer(t, model, ask()).response
			if got := r.Parts[0].Call.Malformed; got != `{"path": "a` || r.StopReason != belay.StopMaxTokens {
				t.Errorf("malformed = %q (%s), want half a call that ends with max_tokens", got, r.StopReason)
			}
		}},
		{"settings are read", "{repeat: true, keep: -1, pace: {chunk: -1}, max_output: 7, steps: [{text: a b}]}", func(t *testing.T, model *scripted.Model) {
			hear(t, model, 2)
			if h := answer(t, model, ask()); len(h.chunks) != 0 || len(model.Requests()) != 0 || model.Info().MaxOutput != 7 {
				t.Errorf("chunks = %v, requests = %d, info = %+v", h.chunks, len(model.Requests()), model.Info())
			}
		}},
		{"usage is read", "steps: [{usage: {in: 1, out: 2, cache_read: 3, cache_write: 4, cost: 0.5}}]", func(t *testing.T, model *scripted.Model) {
			if got, want := answer(t, model, ask()).response.Usage, (belay.Usage{In: 1, Out: 2, CacheRead: 3, CacheWrite: 4, Cost: 0.5}); got != want {
				t.Errorf("usage = %+v, want %+v", got, want)
			}
		}},
		{"an empty list of results is not no list", "steps: [{expect: {results: []}}]", func(t *testing.T, model *scripted.Model) {
			fails(t, model, ask(results(belay.ResultPart{})), belay.ModelInvalid, "the number of results is 1, and the step expects 0")
		}},
		{"anchors and merges work", "steps:\n- &a {text: a, stop: refusal}\n- *a\n- {<<: *a, text: b}\n- calls: [&c {tool: x}, {<<: *c, id: y}]\n", func(t *testing.T, model *scripted.Model) {
			if got := hear(t, model, 3); got != "aab" {
				t.Errorf("the model says %q, want aab", got)
			}
			if got := answer(t, model, ask()).response.Parts[1].Call; got.Tool != "x" || got.ID != "y" {
				t.Errorf("call = %+v, want tool x and id y", got)
			}
		}},
		{"a step may be empty", "steps: [{}]", func(t *testing.T, model *scripted.Model) { hear(t, model, 1) }},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			model, err := scripted.Parse("scripts/tour.yaml", []byte(test.script))
			if err != nil {
				t.Fatal(err)
			}
			test.check(t, model)
		})
	}
}

// The script in the package comment shows every key, so it must be valid.
func TestParseTheScriptOfThePackageComment(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "this one shows every key:\n//\n")
	block, _, _ := strings.Cut(rest, "\n//\n")
	script := strings.ReplaceAll(strings.ReplaceAll(block, "//\t", ""), "\t", "  ")
	model, err := scripted.Parse("doc.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	if got := model.Left(); got != 4 {
		t.Errorf("the script has %d steps, want 4", got)
	}
	for _, value := range []any{scripted.Options{}, scripted.Step{}, scripted.Call{}, scripted.Pace{}, scripted.Fault{}, scripted.Expect{}, scripted.Result{}} {
		for field := range reflect.TypeOf(value).Fields() {
			if key := field.Tag.Get("yaml"); key != "" && key != "-" && !strings.Contains(script, key+":") {
				t.Errorf("the script lacks the key %q of %T", key, value)
			}
		}
	}
}
