package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// messageRules are the rules about the content of messages.
var messageRules = []rule{
	{"every field of a message comes back", func(t testing.TB, s *subject) {
		s.wantBack(t, fullMessage(1))
	}},
	{"empty fields of a message come back empty", func(t testing.TB, s *subject) {
		s.wantBack(t, &belay.Message{Seq: 1, Role: belay.RoleUser, Kind: belay.KindUser})
	}},
	{"an empty original text differs from a missing original text", func(t testing.TB, s *subject) {
		rewritten, empty := user(1, "rewritten"), ""
		rewritten.PreModifiedText = &empty
		s.wantBack(t, rewritten, user(2, "not rewritten"))
	}},
	{"every role, kind and part comes back", func(t testing.TB, s *subject) {
		var messages []*belay.Message
		for i, kind := range []belay.MessageKind{
			belay.KindUser, belay.KindAssistant, belay.KindResults, belay.KindReminder, belay.KindContext, belay.KindInjected, belay.KindCompaction,
		} {
			m := user(int64(i+1), string(kind))
			m.Kind, m.StopReason = kind, []belay.StopReason{belay.StopEnd, belay.StopToolUse, belay.StopMaxTokens, belay.StopRefusal}[i%4]
			messages = append(messages, m)
		}
		for _, p := range fullMessage(1).Parts {
			m := response(int64(len(messages) + 1))
			m.Parts = []belay.Part{p, p}
			messages = append(messages, m)
		}
		s.wantBack(t, messages...)
	}},
	{"a NUL and other control characters in a text come back", func(t testing.TB, s *subject) {
		m := user(1, "before\x00after\x01\x1b[31m\x7f\u0085")
		m.Parts = append(m.Parts, belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: "c", Tool: "shell", Result: belay.Result{Text: "a\x00b"}}})
		s.wantBack(t, m)
	}},
	{"JSON keeps the order of its keys and the spelling of its numbers", func(t testing.TB, s *subject) {
		var messages []*belay.Message
		for i, raw := range []string{
			`{"b":1,"a":2,"aa":3,"B":4}`,
			`{"big":12345678901234567890123,"small":1e-400,"one":1.0,"plus":1E+2,"minus":-0}`,
			`"` + strings.Repeat(`\u0041`, 10) + `<&>"`, `[]`, `null`, `true`,
			`{"twice":1,"twice":2}`, `{"":{"":[[],{},""]}}`,
		} {
			m := user(int64(i+1), "opaque")
			m.Parts[0].Opaque, m.Parts[0].Provider = json.RawMessage(raw), "provider"
			messages = append(messages, m)
		}
		s.wantBack(t, messages...)
	}},
	{"a large message comes back", func(t testing.TB, s *subject) {
		m := user(1, strings.Repeat(foreign, 3000))
		data := make([]byte, 3<<19)
		for i := range data {
			data[i] = byte(i * i >> 8)
		}
		m.Parts = append(m.Parts, belay.File("large.bin", "application/octet-stream", data))
		for i := range 300 {
			m.Parts = append(m.Parts, belay.Text(fmt.Sprint("part ", i)))
		}
		s.wantBack(t, m)
	}},
	{"a time comes back as the same moment, whatever its zone", func(t testing.TB, s *subject) {
		var messages []*belay.Message
		for i, zone := range []*time.Location{time.UTC, time.FixedZone("east", 14*3600), time.FixedZone("west", -11*3600-1800)} {
			m := user(int64(i+1), "now")
			m.Time = m.Time.In(zone)
			messages = append(messages, m)
		}
		s.wantBack(t, messages...)
	}},
}

// wantBack stores messages. It asserts that Read and Open return them unchanged.
func (s *subject) wantBack(t testing.TB, messages ...*belay.Message) {
	t.Helper()
	h := s.hold(t, "a")
	h.commit(t, belay.Commit{Messages: messages})
	same(t, "Read", messages, s.read(t, "a", 0))
	same(t, "Messages", messages, h.reread(t).Messages)
}
