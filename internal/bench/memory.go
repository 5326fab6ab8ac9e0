package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay/memory"
)

func memoryPromises() []promise {
	times := sync.OnceValues(func() (took recallTimes, err error) { // once for both promises, because filling a store takes long
		_, err = inScratch(func(dir string) (_ float64, err error) {
			took, err = measureRecall(dir)
			return 0, err
		})()
		return took, err
	})
	return []promise{
		{"memory/recall-100k-vs-10k", 3, func() (float64, error) {
			took, err := times()
			return took.many / took.few, err
		}},
		{"memory/recall-100k-ms", 20, func() (float64, error) {
			took, err := times()
			return took.many / 1e6, err
		}},
	}
}

// recallTimes are the times of a recall among 10,000 and among 100,000 memories.
type recallTimes struct{ few, many float64 }

// memoryTexts makes texts like those of users: some words are in many memories, and most
// words are in few.
type memoryTexts struct {
	random *rand.Rand
	zipf   *rand.Zipf
	words  []string
}

func newMemoryTexts() *memoryTexts {
	random := rand.New(rand.NewPCG(3, 4))
	syllables := []string{"ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu", "lan", "ter", "mon"}
	words := make([]string, 30_000)
	for i := range words {
		var b strings.Builder
		for range 2 + random.IntN(3) {
			b.WriteString(syllables[random.IntN(len(syllables))])
		}
		words[i] = b.String()
	}
	return &memoryTexts{random, rand.NewZipf(random, 1.1, 8, uint64(len(words)-1)), words}
}

func (m *memoryTexts) sentence(words int) string {
	said := make([]string, words)
	for i := range said {
		said[i] = m.words[m.zipf.Uint64()]
	}
	return strings.Join(said, " ")
}

// fill creates a store with memories in typical scopes. Most belong to the user, and the
// others to projects.
func (m *memoryTexts) fill(path string, count int) (*memory.Store, error) {
	store, err := memory.Open(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	for done := 0; done < count; {
		drafts := make([]memory.Draft, 0, 10_000)
		for range min(cap(drafts), count-done) {
			d := memory.Draft{Text: fmt.Sprintf("%s %d", m.sentence(8+m.random.IntN(8)), done+len(drafts))}
			if m.random.IntN(5) == 0 {
				d.Scope = memory.Scope{Kind: memory.Project, Name: fmt.Sprint("p", m.random.IntN(4))}
			}
			drafts = append(drafts, d)
		}
		if _, err := store.Add(ctx, drafts...); err != nil {
			return nil, errors.Join(err, store.Close())
		}
		done += len(drafts)
	}
	return store, nil
}

// recalls returns the median time of a recall, in nanoseconds, for texts like those of a
// turn.
func (m *memoryTexts) recalls(store *memory.Store, texts []string) (float64, error) {
	best := make([]float64, len(texts))
	for i, text := range texts {
		best[i] = math.Inf(1)
		for range 2 {
			start := time.Now()
			found, err := store.Search(ctx, memory.Query{Text: text, Limit: 6, Scopes: []memory.Scope{
				{Kind: memory.User}, {Kind: memory.Project, Name: "p1"}, {Kind: memory.Agent, Name: "main"},
			}})
			if err != nil {
				return 0, err
			}
			if len(found) == 0 {
				return 0, errors.New("nothing was recalled")
			}
			best[i] = min(best[i], float64(time.Since(start).Nanoseconds()))
		}
	}
	return median(best), nil
}

// questions returns short and long texts of users.
func (m *memoryTexts) questions() []string {
	var texts []string
	for i := range 60 {
		texts = append(texts, m.sentence(4+i%30))
	}
	return texts
}

// measureRecall recalls the same texts from a small and a large store. It does so
// alternately, so that both have the same load on the machine.
func measureRecall(dir string) (took recallTimes, err error) {
	m := newMemoryTexts()
	var stores []*memory.Store
	defer func() {
		for _, s := range stores {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, count := range []int{10_000, 100_000} {
		store, err := m.fill(filepath.Join(dir, fmt.Sprint(count, ".db")), count)
		if err != nil {
			return took, err
		}
		stores = append(stores, store)
	}
	texts := m.questions()
	took = recallTimes{math.Inf(1), math.Inf(1)}
	for range 5 {
		for i, best := range []*float64{&took.few, &took.many} {
			now, err := m.recalls(stores[i], texts)
			if err != nil {
				return took, err
			}
			*best = min(*best, now)
		}
	}
	return took, nil
}
