package hooktest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/probetest"
)

func TestSecretsSuiteCatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault   string
		inflict func(s *hooktest.Store)
		want    string
	}{
		{"a secret in the bytes that are stored", func(s *hooktest.Store) {
			s.Dump = func() ([]byte, error) { return []byte("\x00\x01" + hooktest.SecretMark + "input\x00"), nil }
		}, hooktest.SecretMark + `input" was stored, in the dump`},
		{"a secret in a record", func(s *hooktest.Store) {
			s.Journal = alteredJournal{s.Journal, func(r *hook.Run) {
				r.Diagnostics = append(slices.Clone(r.Diagnostics), hook.Diagnostic{Message: hooktest.SecretMark + "error"})
			}}
		}, hooktest.SecretMark + `error" was stored, in the run`},
		{"a secret that JSON does not show", func(s *hooktest.Store) {
			s.Journal = alteredJournal{s.Journal, func(r *hook.Run) {
				r.Diagnostics = append(slices.Clone(r.Diagnostics), hook.Diagnostic{Err: errors.New(hooktest.SecretMark + "cause")})
			}}
		}, hooktest.SecretMark + `cause" was stored, in the run`},
		{"a journal that holds less than it should", func(s *hooktest.Store) {
			s.Journal = alteredJournal{s.Journal, func(r *hook.Run) { r.Audit = nil }}
			s.Queue = hook.NewMemoryQueue(s.Journal, nil)
		}, hooktest.SafeMark + `audit" was not found`},
		{"a dump that fails", func(s *hooktest.Store) {
			s.Dump = func() ([]byte, error) { return nil, errors.New("disk gone") }
		}, "dump: disk gone"},
		{"a store without a queue", func(s *hooktest.Store) { s.Queue = nil }, "needs a journal and a queue"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			store := openMemory(t, 1024)
			test.inflict(&store)
			probetest.Run(t, func(t testing.TB) { hooktest.CheckSecrets(t, store) }).WantFailure(t, test.want)
		})
	}
}

// alteredJournal changes runs before it stores them.
type alteredJournal struct {
	hook.Journal
	alter func(r *hook.Run)
}

func (j alteredJournal) Append(ctx context.Context, runs []hook.Run) error {
	runs = slices.Clone(runs)
	for i := range runs {
		j.alter(&runs[i])
	}
	return j.Journal.Append(ctx, runs)
}

func (j alteredJournal) List(ctx context.Context, f hook.Filter) iter.Seq2[hook.Run, error] {
	return j.Journal.(hook.ListJournal).List(ctx, f)
}
