package storetest_test

import (
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/probetest"
	"github.com/belay-run/belay/store/storetest"
)

// fault is a broken store, with the names of the rules that must find the fault.
type fault struct {
	name    string
	inflict func(f *flawed)
	rules   []string
}

func TestSuiteCatches(t *testing.T) {
	t.Parallel()
	caught := make(map[string]bool)
	for _, broken := range slices.Concat(
		holdFaults, commitFaults, contentFaults, readFaults, approvalFaults, listFaults, infoFaults, manageFaults, inboxFaults, journalFaults,
	) {
		for _, rule := range broken.rules {
			caught[rule] = true
		}
		t.Run(broken.name, func(t *testing.T) {
			t.Parallel()
			for _, rule := range storetest.Rules() {
				if !slices.Contains(broken.rules, rule.Name) {
					continue
				}
				f := newFlawed()
				broken.inflict(f)
				if p := probetest.Run(t, func(t testing.TB) { rule.Check(t, f, options()) }); len(p.Failures()) == 0 {
					t.Errorf("the rule %q holds for a store that %s", rule.Name, broken.name)
				}
			}
		})
	}
	for _, rule := range storetest.Rules() {
		if !caught[rule.Name] {
			t.Errorf("nothing breaks the rule %q: it may be one that cannot fail", rule.Name)
		}
		delete(caught, rule.Name)
	}
	for rule := range caught {
		t.Errorf("there is no rule %q", rule)
	}
}

// The suite finds a store that loses any field, including fields that are added later.
func TestSuiteCatchesEveryForgottenField(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rules []string
		types []reflect.Type
		skip  []string // fields that are needed to store anything, or that another rule tests
	}{
		{[]string{"every field of a message comes back"}, []reflect.Type{
			reflect.TypeFor[belay.Message](), reflect.TypeFor[belay.Part](), reflect.TypeFor[belay.Media](),
			reflect.TypeFor[belay.CallPart](), reflect.TypeFor[belay.ResultPart](), reflect.TypeFor[belay.Result](), reflect.TypeFor[belay.Usage](),
		}, []string{"Message.Seq"}},
		{[]string{"every field of a call comes back"}, []reflect.Type{reflect.TypeFor[belay.CallRecord](), reflect.TypeFor[belay.Result]()}, []string{
			"CallRecord.Message", "CallRecord.Index",
		}},
		{[]string{"every field of a state comes back", "a listing has every field of a state"}, []reflect.Type{
			reflect.TypeFor[belay.SessionState](), reflect.TypeFor[belay.TurnState](), reflect.TypeFor[belay.ParkedCall](), reflect.TypeFor[belay.ForkPoint](), reflect.TypeFor[belay.Usage](),
			reflect.TypeFor[belay.PendingReminder](), reflect.TypeFor[belay.Reminder](), reflect.TypeFor[belay.ReminderSettings](),
			reflect.TypeFor[belay.Grant](), reflect.TypeFor[belay.ContextEntry](), reflect.TypeFor[belay.PromptSection](), reflect.TypeFor[belay.ToolBundle](), reflect.TypeFor[belay.ToolDeclaration](),
		}, nil},
		{[]string{"every field of an approval comes back", "approvals are listed with every field, decided or not"}, []reflect.Type{reflect.TypeFor[belay.Approval](), reflect.TypeFor[belay.Decision](), reflect.TypeFor[belay.ApprovalScope]()}, []string{
			"Approval.ID", "Approval.Session",
		}},
	} {
		for _, typ := range test.types {
			for field := range typ.Fields() {
				name := typ.Name() + "." + field.Name
				if !field.IsExported() || slices.Contains(test.skip, name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					f := newFlawed()
					onCommit(func(_ *flawed, c *belay.Commit) { forget(reflect.ValueOf(c).Elem(), typ, field.Index) })(f)
					for _, rule := range storetest.Rules() {
						if slices.Contains(test.rules, rule.Name) {
							probetest.Run(t, func(t testing.TB) { rule.Check(t, f, options()) }).WantFailure(t)
						}
					}
				})
			}
		}
	}
}

// forget sets a field to its zero value in all values of its type.
func forget(v reflect.Value, typ reflect.Type, field []int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			forget(v.Elem(), typ, field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			forget(v.Index(i), typ, field)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				forget(v.Field(i), typ, field)
			}
		}
		if v.Type() == typ {
			v.FieldByIndex(field).SetZero()
		}
	default:
	}
}

// wholePart returns a part that has the set fields of all given parts.
func wholePart(parts []belay.Part) belay.Part {
	var whole belay.Part
	for _, p := range parts {
		for field := range reflect.TypeFor[belay.Part]().Fields() {
			if from := reflect.ValueOf(p).FieldByIndex(field.Index); !from.IsZero() {
				reflect.ValueOf(&whole).Elem().FieldByIndex(field.Index).Set(from)
			}
		}
	}
	return whole
}

// The samples of the suite set every field at any depth. If you add a field, add it to the
// samples.
func TestSamplesSetEveryField(t *testing.T) {
	t.Parallel()
	state, approval := storetest.FullState(), storetest.FullApproval("a", "b")
	by := storetest.Decision(approval, "ann")
	approval.Decided = &by
	call := storetest.FullCall(1, 1)
	appended := &state.Turn.Appended[0]
	appended.Parts = []belay.Part{wholePart(appended.Parts)}
	for path := range emptyFields("", reflect.ValueOf([]any{&state, &approval, &call})) {
		t.Errorf("%s is empty in the sample", path)
	}
	message := storetest.FullMessage(1)
	message.Parts = []belay.Part{wholePart(message.Parts)}
	for path := range emptyFields("Message", reflect.ValueOf(message)) {
		t.Errorf("%s is empty in the sample", path)
	}
}

// emptyFields yields the exported fields of a value that are empty.
func emptyFields(path string, v reflect.Value) iter.Seq[string] {
	return func(yield func(string) bool) {
		var walk func(path string, v reflect.Value) bool
		walk = func(path string, v reflect.Value) bool {
			if v.IsZero() {
				return yield(path)
			}
			switch v.Kind() {
			case reflect.Pointer, reflect.Interface:
				return walk(path, v.Elem())
			case reflect.Struct:
				for i := range v.NumField() {
					field := v.Type().Field(i)
					if field.IsExported() && !walk(strings.TrimPrefix(path+"."+field.Name, "."), v.Field(i)) {
						return false
					}
				}
			case reflect.Slice:
				if v.Type().Elem().Kind() == reflect.Uint8 {
					return true
				}
				for i := range v.Len() {
					if !walk(path, v.Index(i)) {
						return false
					}
				}
			default:
			}
			return true
		}
		walk(path, v)
	}
}

// plain is a store without a journal.
type plain struct{ belay.Store }

// A store without a journal passes all rules that need no journal.
func TestSuiteWithoutJournal(t *testing.T) {
	t.Parallel()
	for _, rule := range storetest.Rules() {
		p := probetest.Run(t, func(t testing.TB) { rule.Check(t, plain{newFlawed()}, storetest.Options{}) })
		p.WantSuccess(t)
	}
}
