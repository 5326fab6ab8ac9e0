package memory

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Query is a search.
type Query struct {
	// Text contains plain words. It has no query syntax.
	Text string
	// Scopes are the owners of the memories to search. Nil means all, an empty list finds
	// nothing.
	Scopes []Scope
	// Limit is the maximum number of results. Defaults to 10.
	Limit int
}

// Found is a memory that a search found. A higher score is a better match. Do not compare
// scores of different searches.
type Found struct {
	Memory
	Score float64 `json:"score"`
}

// These are the limits of a search. A word that occurs in thousands of memories says little
// about each of them, so a search does not read all of them.
const (
	mostPostings = 1_000  // index entries that are read for rare words
	mostJoined   = 10_000 // a pair is searched only if one of its words occurs in at most this many memories
	mostNewest   = 100    // memories that are read for a common word or a pair
	mostPairs    = 3
	mostWeighed  = 64 // memories that weigh compares
)

// term is a word of a query, with how often it occurs.
type term struct {
	word  string
	in    []string // the word in index form, for each scope that contains it
	count int
	idf   float64
}

// Search finds active memories by their words, best first. The same query on the same
// memories always returns the same result in the same order.
//
// Rare words count more than common words. Search first looks up all memories with the
// rarest words. For common words it looks up only the newest memories that have one or two
// of them.
func (s *Store) Search(ctx context.Context, q Query) ([]Found, error) {
	found, err := s.search(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("search memories: %w", err)
	}
	return found, nil
}

func (s *Store) search(ctx context.Context, q Query) ([]Found, error) {
	words := queryWords(q.Text)
	if len(words) == 0 {
		return nil, nil
	}
	scopes, err := s.scopeIDs(ctx, q.Scopes)
	if err != nil || len(scopes) == 0 {
		return nil, err
	}
	terms, err := s.terms(ctx, words, scopes)
	if err != nil || len(terms) == 0 {
		return nil, err
	}
	scores, err := s.candidates(ctx, terms)
	if err != nil {
		return nil, err
	}
	nums := make([]int64, 0, len(scores))
	for num := range scores {
		nums = append(nums, num)
	}
	slices.SortFunc(nums, func(a, b int64) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(b, a)) })
	return s.weigh(ctx, nums[:min(len(nums), mostWeighed)], terms, cmp.Or(q.Limit, 10))
}

// scopeIDs returns the numbers of the scopes. It omits scopes that do not exist.
func (s *Store) scopeIDs(ctx context.Context, scopes []Scope) (ids []int64, err error) {
	if scopes == nil {
		return numbers(s.reader.QueryContext(ctx, "SELECT id FROM scopes ORDER BY id"))
	}
	for _, scope := range scopes {
		var id int64
		switch err := s.stmts.scopeID.QueryRowContext(ctx, scope.String()).Scan(&id); {
		case err == nil:
			ids = append(ids, id)
		case !errors.Is(err, sql.ErrNoRows):
			return nil, explain(err)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// numbers reads a query with one column of numbers.
func numbers(rows *sql.Rows, err error) (nums []int64, _ error) {
	if err != nil {
		return nil, explain(err)
	}
	defer func() { _ = rows.Close() }() // the rows were only read
	for rows.Next() {
		var num int64
		if err := rows.Scan(&num); err != nil {
			return nil, explain(err)
		}
		nums = append(nums, num)
	}
	return nums, explain(rows.Err())
}

// terms returns the words of a query that occur in memories, rarest first.
func (s *Store) terms(ctx context.Context, words []string, scopes []int64) ([]term, error) {
	count := func(word string) (n int, err error) {
		err = s.stmts.wordCount.QueryRowContext(ctx, word).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, nil
		}
		return n, explain(err)
	}
	all := 0
	for _, scope := range scopes {
		n, err := count(inScope(scope, ""))
		if err != nil {
			return nil, err
		}
		all += n
	}
	var terms []term
	for _, word := range words {
		t := term{word: word}
		for _, scope := range scopes {
			n, err := count(inScope(scope, word))
			if err != nil {
				return nil, err
			}
			if n > 0 {
				t.in, t.count = append(t.in, inScope(scope, word)), t.count+n
			}
		}
		if t.count > 0 {
			t.idf = math.Log(1 + (float64(all)+1)/float64(t.count))
			terms = append(terms, t)
		}
	}
	slices.SortStableFunc(terms, func(a, b term) int { return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(a.word, b.word)) })
	return terms, nil
}

// match returns the term in the syntax of FTS5. It needs no escaping, because words contain
// only letters and digits.
func (t *term) match() string { return `("` + strings.Join(t.in, `" OR "`) + `")` }

// candidates returns the memories that contain a term of the query, each with its score. The
// key is the memory's row number. The score is the sum of the weights of the terms found.
func (s *Store) candidates(ctx context.Context, terms []term) (map[int64]float64, error) {
	scores := make(map[int64]float64)
	add := func(score float64, stmt *sql.Stmt, args ...any) error {
		nums, err := numbers(stmt.QueryContext(ctx, args...))
		for _, num := range nums {
			scores[num] += score
		}
		return err
	}
	left := mostPostings
	for len(terms) > 0 && terms[0].count <= left {
		t := terms[0]
		if err := add(t.idf, s.stmts.postings, t.match()); err != nil {
			return nil, err
		}
		left -= t.count
		terms = terms[1:]
	}
	if len(terms) == 0 {
		return scores, nil
	}
	pairs := 0
	for i := 0; i < len(terms) && terms[i].count <= mostJoined; i++ {
		for j := i + 1; j < len(terms) && pairs < mostPairs; j++ {
			if err := add(terms[i].idf+terms[j].idf, s.stmts.newest, terms[i].match()+" AND "+terms[j].match(), mostNewest); err != nil {
				return nil, err
			}
			pairs++
		}
	}
	return scores, add(terms[0].idf, s.stmts.newest, terms[0].match(), mostNewest)
}

// weigh compares candidates with all words of the query and returns the best.
func (s *Store) weigh(ctx context.Context, nums []int64, terms []term, limit int) ([]Found, error) {
	type weighed struct {
		Found
		num int64
	}
	var all []weighed
	for _, num := range nums {
		m, err := scan(s.stmts.byNum.QueryRowContext(ctx, num))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if m.State != Active { // the memory was just forgotten
			continue
		}
		words := m.words()
		has := make(map[string]bool, len(words))
		for _, w := range words {
			has[w] = true
		}
		score := 0.0
		for i := range terms { // always in the same order, so that rounding is the same each time
			if has[terms[i].word] {
				score += terms[i].idf
			}
		}
		score /= 0.8 + 0.2*min(float64(len(words))/12, 5) // of two memories with the same matching words, the shorter one is better
		all = append(all, weighed{Found{m.Memory, score}, num})
	}
	slices.SortFunc(all, func(a, b weighed) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Updated.Compare(a.Updated), cmp.Compare(b.num, a.num))
	})
	found := make([]Found, min(len(all), limit))
	for i := range found {
		found[i] = all[i].Found
	}
	return found, nil
}
