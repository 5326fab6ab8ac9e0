package scripted_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// hear sends a number of requests and returns the texts of the responses.
func hear(t *testing.T, model *scripted.Model, times int) string {
	t.Helper()
	all := ""
	for range times {
		all += textOf(answer(t, model, ask()).response)
	}
	return all
}

func TestScriptEnds(t *testing.T) {
	t.Parallel()
	model := scripted.New(says("a", "b"), nil)
	if got := hear(t, model, 2); got != "ab" {
		t.Errorf("the model says %q, want the steps in order", got)
	}
	fails(t, model, ask(), belay.ModelInvalid, "ends after step 2", "needs step 3", "add a step")
	fails(t, scripted.New(nil, &scripted.Options{Repeat: true}), ask(), belay.ModelInvalid, "ends after step 0")
}

func TestRepeatPlaysTheLastStep(t *testing.T) {
	t.Parallel()
	if got := hear(t, scripted.New(says("a", "b"), &scripted.Options{Repeat: true}), 4); got != "abbb" {
		t.Errorf("the model says %q, want abbb", got)
	}
}

func TestForkStartsAnew(t *testing.T) {
	t.Parallel()
	model := scripted.New(says("a", "b"), &scripted.Options{Name: "test/m"})
	hear(t, model, 1)
	fork := model.Fork()
	if got := hear(t, fork, 2) + hear(t, model, 1); got != "abb" {
		t.Errorf("fork and model say %q, want abb", got)
	}
	if fork.Info() != model.Info() {
		t.Errorf("info of the fork = %+v, want %+v", fork.Info(), model.Info())
	}
}

func TestRewindStartsAnew(t *testing.T) {
	t.Parallel()
	model := scripted.New(says("a", "b"), &scripted.Options{Cache: true})
	hear(t, model, 2)
	model.Rewind()
	if model.Left() != 2 || len(model.Requests()) != 0 {
		t.Errorf("after a rewind %d steps are left and %d requests on record, want 2 and 0", model.Left(), len(model.Requests()))
	}
	if got := hear(t, model, 2); got != "ab" {
		t.Errorf("the model says %q, want ab", got)
	}
}

func TestLeftNeverGoesBelowZero(t *testing.T) {
	t.Parallel()
	model := scripted.New(says("a", "b"), &scripted.Options{Repeat: true})
	for i, want := range []int{2, 1, 0, 0} {
		if got := model.Left(); got != want {
			t.Errorf("after %d requests %d steps are left, want %d", i, got, want)
		}
		hear(t, model, 1)
	}
}

func TestFollowTranscript(t *testing.T) {
	t.Parallel()
	model := scripted.New(says("a", "b", "c"), &scripted.Options{FollowTranscript: true})
	said := assistant(belay.Text("x"))
	for _, test := range []struct {
		rule string
		req  *belay.Request
		want string
	}{
		{"a conversation in which the model said two things hears the third", ask(user(""), said, user(""), said, user("")), "c"},
		{"a new one hears the first", ask(user("")), "a"},
		{"a retry hears the same", ask(user("")), "a"},
		{"messages that follow each other count one by one", ask(user(""), said), "b"},
	} {
		if got := textOf(answer(t, model, test.req).response); got != test.want {
			t.Errorf("%s: got %q, want %q", test.rule, got, test.want)
		}
	}
	fails(t, model, ask(said, said, said), belay.ModelInvalid, "needs step 4")
	if got := model.Left(); got != 0 {
		t.Errorf("%d steps are left, want none: the conversation that got furthest counts", got)
	}
}

func TestEachStepIsPlayedOnce(t *testing.T) {
	t.Parallel()
	const n = 200
	steps := make([]scripted.Step, n)
	for i := range steps {
		steps[i].Text = strconv.Itoa(i)
	}
	model := scripted.New(steps, &scripted.Options{Cache: true, Window: 100})
	var group sync.WaitGroup
	var heardTexts sync.Map
	for range 4 {
		group.Go(func() {
			for range n / 4 {
				h := listen(t.Context(), model, ask(user("hi")))
				if h.err != nil {
					t.Error(h.err)
					return
				}
				if _, again := heardTexts.LoadOrStore(textOf(h.response), true); again {
					t.Errorf("step %s was played twice", textOf(h.response))
				}
				model.Requests()
			}
		})
	}
	group.Wait()
	if model.Left() != 0 {
		t.Errorf("%d steps are left, want none", model.Left())
	}
}
