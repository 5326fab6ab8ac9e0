package belay

import (
	"hash/maphash"
	"slices"
	"strings"
)

// fingerprint identifies a call together with its result.
type fingerprint uint64

var fingerprints = maphash.MakeSeed()

func fingerprintOf(tool, input string, r *Result) fingerprint {
	text := r.Text
	if r.Spilled != "" { // each spilled result has a different file name
		text = strings.ReplaceAll(text, r.Spilled, "")
	}
	var h maphash.Hash
	h.SetSeed(fingerprints)
	for _, s := range []string{tool, input, text} {
		h.WriteString(s)
		h.WriteByte(0)
	}
	for i := range r.Media {
		h.WriteString(r.Media[i].URL)
		h.WriteByte(0)
		h.Write(r.Media[i].Data)
	}
	return fingerprint(h.Sum64())
}

// isStuck reports whether the model repeats itself: the same call with the same result
// three times in a row, or two such calls in alternation. The first time, the model only
// gets a reminder. The next time, isStuck reports true and the turn ends.
func (t *turn) isStuck(b *batch) bool {
	found := false
	if t.recent == nil {
		t.recent = t.room.recent[:0]
	}
	before := len(t.recent)
	for _, c := range b.calls {
		mark := fingerprintOf(c.Tool, string(c.Input), c.result)
		if slices.Contains(t.recent[before:], mark) {
			continue // parallel calls of one message are not repetitions
		}
		t.recent = append(t.recent, mark)
		found = found || circles(t.recent)
	}
	if n := len(t.recent) - 3; n > 0 {
		t.recent = slices.Delete(t.recent, 0, n)
	}
	switch {
	case !found:
		return false
	case t.state.Warned:
		t.end.why = "the model repeated the same calls with the same results"
		return true
	default:
		t.state.Warned = true
		t.addReminder(reminderRuntime, "belay", "You repeat the same calls and get the same results. Do something else, or say what stops you. If you repeat them again, the turn ends.")
		return false
	}
}

// circles reports whether the last calls are AAA or ABAB.
func circles(recent []fingerprint) bool {
	n := len(recent)
	if n >= 3 && recent[n-1] == recent[n-2] && recent[n-2] == recent[n-3] {
		return true
	}
	return n >= 4 && recent[n-1] == recent[n-3] && recent[n-2] == recent[n-4] && recent[n-1] != recent[n-2]
}

// recallRecent reads the last calls of a resumed turn from the transcript.
func (t *turn) recallRecent() {
	inputs := make(map[string]string)
	for _, m := range t.session.messages {
		if m.Turn != t.state.ID {
			continue
		}
		before := len(t.recent)
		for i := range m.Parts {
			switch p := &m.Parts[i]; {
			case p.Call != nil && p.Call.Final != nil:
				inputs[p.Call.ID] = string(p.Call.Final)
			case p.Call != nil:
				inputs[p.Call.ID] = string(p.Call.Input)
			case p.Result != nil:
				mark := fingerprintOf(p.Result.Tool, inputs[p.Result.Call], &p.Result.Result)
				if !slices.Contains(t.recent[before:], mark) { // see isStuck
					t.recent = append(t.recent, mark)
				}
			}
		}
	}
	if n := len(t.recent) - 3; n > 0 {
		t.recent = slices.Delete(t.recent, 0, n)
	}
}
