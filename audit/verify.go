package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// VerifyOptions are the settings of Verify. A nil pointer is valid.
type VerifyOptions struct {
	// Anchors are entries that the chain must have. Defaults to none.
	Anchors []Anchor
	// Main is one more than the number of entries of the main chain. Defaults to 0: Verify
	// does not check it.
	Main int64
	// OneLane says that the store has one writer at a time, as SQLite: all entries are in the
	// main chain, and the number of an entry is its place.
	OneLane bool
}

// Source is what Verify reads: a snapshot of a database, or an export.
type Source interface {
	// Entries calls each for the entries of the chain, by their numbers. wrong names the columns
	// whose values are no numbers. It is usually empty.
	Entries(ctx context.Context, each func(e *Entry, wrong string) error) error
	// Table returns a table with the columns that the source has, in the order in which they
	// are hashed: an export can be of an older version. It returns nil if the source does not
	// have the table: an export has no texts and no grants.
	Table(t *Table) *Table
	// Rows calls each for the rows of a table that Table has returned, sorted by its Order.
	Rows(ctx context.Context, t *Table, each func(values []string) error) error
	// Grants calls each for the sessions that have grants, with the hash of the grants.
	Grants(ctx context.Context, each func(session, hash string) error) error
}

// verifier is one comparison. Of each row it keeps the last line until it has read the row.
type verifier struct {
	Verification
	lanes   map[string]*head
	lines   map[string]line
	claims  []claim // of entries in other lanes
	hashes  map[place]string
	anchors map[int64][]string
	lists   map[string]string // the lists of hooks that are in use, each with the id of a run
	oneLane bool
}

// head is the last entry of a lane that was read.
type head struct {
	idx  int64
	hash string
}

// line is the last line about a row.
type line struct {
	hash  string // "" if the row was removed
	seq   int64  // of the entry
	final bool   // the row never changes again
}

// place is the place of an entry.
type place struct {
	lane string
	idx  int64
}

// claim is the line of an entry about an entry of another lane.
type claim struct {
	place
	hash string
	seq  int64
}

// Verify compares the rows of a source with its chain.
func Verify(ctx context.Context, from Source, opts *VerifyOptions) (*Verification, error) {
	if opts == nil {
		opts = &VerifyOptions{}
	}
	v := &verifier{lanes: make(map[string]*head), lines: make(map[string]line), hashes: make(map[place]string), anchors: make(map[int64][]string), lists: make(map[string]string), oneLane: opts.OneLane}
	for _, a := range opts.Anchors {
		v.anchors[a.Seq] = append(v.anchors[a.Seq], a.Hash)
	}
	if err := from.Entries(ctx, func(e *Entry, wrong string) error { v.entry(e, wrong); return nil }); err != nil {
		return nil, fmt.Errorf("read the chain: %w", err)
	}
	v.ends(opts)
	counts := map[string]*int64{Runs.Name: &v.Runs, Approvals.Name: &v.Approvals, Words.Name: new(int64)}
	for _, t := range []*Table{&Runs, &Approvals, &Words} {
		if t = from.Table(t); t == nil {
			continue
		}
		err := from.Rows(ctx, t, func(row []string) error {
			*counts[t.Name]++
			if list := t.value(row, "hooks"); list != "" {
				v.lists[list] = t.value(row, "id")
			}
			v.row(t, t.key(row), t.value(row, "id"), t.value(row, "session"), RowHash(row...))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", t.Name, err)
		}
		v.missing(t)
	}
	if from.Table(&Grants) != nil {
		err := from.Grants(ctx, func(session, hash string) error {
			v.Grants++
			v.row(&Grants, "g"+Key(session), session, session, hash)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read grants: %w", err)
		}
		v.missing(&Grants)
	}
	if err := v.hookLists(ctx, from); err != nil {
		return nil, fmt.Errorf("read %s: %w", Hooks.Name, err)
	}
	return &v.Verification, nil
}

// chainTable is the name of the chain's own table.
const chainTable = "audit_chain"

// entry checks an entry with the one before it, and notes its lines. wrong names the columns whose
// values are no numbers.
func (v *verifier) entry(e *Entry, wrong string) {
	v.Entries++
	if at := time.Unix(0, e.Time).UTC(); wrong == "" {
		if v.First.IsZero() {
			v.First = at
		}
		v.Last = at
	}
	where := func(kind ProblemKind, text string, args ...any) {
		v.Add(Problem{Kind: kind, Table: chainTable, Row: strconv.FormatInt(e.Seq, 10), Text: fmt.Sprintf(text, args...)})
	}
	before := v.lanes[e.Lane]
	if before == nil {
		before = &head{}
		v.lanes[e.Lane] = before
	}
	switch {
	case wrong != "":
		where(Changed, "its value of %s is not a number", wrong)
		e.Idx = before.idx + 1 // it keeps its place, so that the next entry is compared with it
	case v.oneLane && (e.Lane != "" || e.Seq != e.Idx):
		where(Inserted, "it is not in the main chain, but this store has no other one")
	case e.Idx > before.idx+1:
		where(Removed, "%s removed", entriesBefore(e.Idx-before.idx-1))
	case e.Idx <= before.idx:
		where(Inserted, "its place %d in the chain is taken by another entry", e.Idx)
	case HashOf(before.hash, e) != e.Hash:
		where(Changed, "its hash does not match its content and the entry before it")
	}
	before.idx, before.hash = e.Idx, e.Hash
	if e.Lane != "" { // entries of other lanes never name those of the main chain
		v.hashes[place{e.Lane, e.Idx}] = e.Hash
	}
	if e.Lane == "" {
		v.Head = &Anchor{Seq: e.Seq, Hash: e.Hash}
	}
	for _, hash := range v.anchors[e.Seq] {
		if hash != e.Hash {
			where(Changed, "its hash is not the hash of the anchor: the chain was made anew, before this entry or at it")
		}
	}
	delete(v.anchors, e.Seq)
	if e.Body == "" {
		return
	}
	for text := range strings.SplitSeq(e.Body, " ") {
		if !v.line(e.Seq, text) {
			where(Changed, "it has a line that cannot be read")
			return
		}
	}
}

func entriesBefore(n int64) string {
	if n == 1 {
		return "1 entry before it was"
	}
	return fmt.Sprint(n, " entries before it were")
}

// line notes a line of an entry. It returns false if the line cannot be read.
func (v *verifier) line(seq int64, text string) bool {
	key, hash, hashed := strings.Cut(text, "=")
	switch {
	case len(key) < 2:
		return false
	case !hashed && key[0] == '-' && key[1] == 's':
		v.Deleted++
		v.lines["g"+key[2:]] = line{seq: seq}
	case !hashed && key[0] == '-' && strings.ContainsRune("raw", rune(key[1])):
		switch key[1] {
		case 'r':
			v.DeletedRuns++
		case 'a':
			v.DeletedApprovals++
		}
		v.lines[key[1:]] = line{seq: seq}
	case hashed && key[0] == '<' && strings.ContainsRune("rawg", rune(key[1])):
		v.found(key[1:], line{hash: hash, seq: seq})
	case hashed && key[0] == 'c':
		lane, number, ok := strings.Cut(key[1:], ":")
		idx, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil {
			return false
		}
		v.claims = append(v.claims, claim{place{lane, idx}, hash, seq})
	case hashed && strings.ContainsRune("rawg", rune(key[0])):
		v.set(key, line{hash: hash, seq: seq})
	case hashed && strings.ContainsRune("RAW", rune(key[0])):
		v.set(strings.ToLower(key[:1])+key[1:], line{hash: hash, seq: seq, final: true})
	default:
		return false
	}
	return true
}

// set notes the line of a row. A record that has ended and a decided approval never change
// again, not even back to a row that can change, and a removed row never comes back. So an entry
// that says so was not written by Belay, although it and the row match.
func (v *verifier) set(key string, next line) {
	known, ok := v.lines[key]
	removed := ok && known.hash == "" && key[0] != 'g' // a session can get grants again
	opened := known.final && !next.final
	next.final = next.final || known.final
	v.lines[key] = next
	t := tableOf(key)
	p := Problem{Table: t.Name, Row: key[1:]}
	switch {
	case removed: // positions and ids are not used again
		p.Kind, p.Text = Inserted, fmt.Sprintf("entry %d has %s again, which entry %d removed: Belay never does that", next.seq, t.named(key), known.seq)
	case known.final && known.hash != next.hash:
		p.Kind, p.Text = Changed, fmt.Sprintf("entry %d changes %s, which was complete in entry %d: Belay never does that", next.seq, t.named(key), known.seq)
	case opened:
		p.Kind, p.Text = Changed, fmt.Sprintf("entry %d says that %s can change, which was complete in entry %d: Belay never does that", next.seq, t.named(key), known.seq)
	default:
		return
	}
	v.Add(p)
}

// found compares a row, as a transaction found it, with the last line before. Somebody may have
// changed the row in between. The transaction has kept a part of the change, so that the row and
// its line match afterwards.
func (v *verifier) found(key string, then line) {
	known, ok := v.lines[key]
	if known.hash == then.hash {
		return
	}
	t := tableOf(key)
	p := Problem{Kind: Changed, Table: t.Name, Row: key[1:], Text: fmt.Sprintf("%s did not match entry %d when Belay changed it in entry %d", t.named(key), known.seq, then.seq)}
	switch {
	case !ok || known.hash == "":
		p.Kind, p.Text = Inserted, fmt.Sprintf("%s was not in the chain when Belay changed it in entry %d", t.named(key), then.seq)
	case then.hash == "":
		p.Kind, p.Text = Removed, fmt.Sprintf("%s, which entry %d has, was removed before entry %d", t.named(key), known.seq, then.seq)
	}
	v.Add(p)
}

// tableOf returns the table of a line, by the first letter of its key.
func tableOf(key string) *Table {
	for _, t := range []*Table{&Runs, &Approvals, &Words} {
		if key[:1] == t.prefix {
			return t
		}
	}
	return &Grants
}

// named names the row of a line in a sentence.
func (t *Table) named(key string) string {
	if t.prefix == "r" {
		return "the record at position " + key[1:]
	}
	return singular[t.Name] + " with the key " + key[1:]
}

// ends checks what can be known only after the last entry.
func (v *verifier) ends(opts *VerifyOptions) {
	for _, c := range v.claims {
		if hash, ok := v.hashes[c.place]; !ok {
			v.Add(Problem{
				Kind: Removed, Table: chainTable, Row: c.lane + ":" + strconv.FormatInt(c.idx, 10),
				Text: fmt.Sprintf("entry %d of the writer %s is missing: entry %d names it", c.idx, c.lane, c.seq),
			})
		} else if hash != c.hash {
			v.Add(Problem{
				Kind: Changed, Table: chainTable, Row: c.lane + ":" + strconv.FormatInt(c.idx, 10),
				Text: fmt.Sprintf("entry %d of the writer %s does not have the hash that entry %d names", c.idx, c.lane, c.seq),
			})
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(v.anchors)) {
		v.Add(Problem{Kind: Removed, Table: chainTable, Row: strconv.FormatInt(seq, 10), Text: fmt.Sprintf("entry %d is missing: an anchor names it", seq)})
	}
	have := int64(0)
	if main := v.lanes[""]; main != nil {
		have = main.idx
	}
	if opts.Main > 0 && have+1 != opts.Main {
		v.Add(Problem{Kind: Removed, Table: chainTable, Row: strconv.FormatInt(opts.Main-1, 10), Text: fmt.Sprintf("the main chain ends at its entry %d, but its counter says %d", have, opts.Main-1)})
	}
	v.claims, v.hashes = nil, nil
}

// row compares a row with its last line.
func (v *verifier) row(t *Table, key, id, session, hash string) {
	known, ok := v.lines[key]
	p := Problem{Table: t.Name, Row: id, Session: session}
	switch {
	case !ok:
		p.Kind, p.Text = Inserted, singular[t.Name]+" is not in the chain: something other than this version of Belay has written it"
	case known.hash == "":
		p.Kind, p.Text = Inserted, fmt.Sprintf("%s is there again, although entry %d says that it was removed", singular[t.Name], known.seq)
	case known.hash != hash:
		p.Kind, p.Text = Changed, fmt.Sprintf("%s does not match entry %d", singular[t.Name], known.seq)
	default:
		delete(v.lines, key)
		return
	}
	delete(v.lines, key)
	v.Add(p)
}

// singular says what a row of a table is.
var singular = map[string]string{"runs": "the record", "approvals": "the approval", "approval_words": "the text of the approval", "sessions": "what the session was granted"}

// missing reports the rows of a table that have a line, but were not read.
func (v *verifier) missing(t *Table) {
	var gone []string
	for key, known := range v.lines {
		if strings.HasPrefix(key, t.prefix) && known.hash != "" {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	for _, key := range gone {
		v.Add(Problem{Kind: Removed, Table: t.Name, Row: key[1:], Text: fmt.Sprintf("%s, which entry %d has, was removed", t.named(key), v.lines[key].seq)})
	}
	maps.DeleteFunc(v.lines, func(key string, _ line) bool { return strings.HasPrefix(key, t.prefix) })
}

// hookLists checks the lists of hooks. The name of a list is a hash of its content.
func (v *verifier) hookLists(ctx context.Context, from Source) error {
	hooks := from.Table(&Hooks)
	if hooks == nil {
		return nil
	}
	name, hash, last, counts := "", sha256.New(), 0, true
	end := func() {
		if name != "" && (!counts || ListName(hash) != name) {
			v.Add(Problem{Kind: Changed, Table: Hooks.Name, Row: name, Text: fmt.Sprintf("the list of hooks %s does not have the content that its name stands for", name)})
		}
		delete(v.lists, name)
	}
	err := from.Rows(ctx, hooks, func(row []string) error {
		of := func(column string) string { return hooks.value(row, column) }
		if list := of("list"); list != name {
			end()
			name, last, counts = list, 0, true
			hash.Reset()
		}
		last++
		line, err := strconv.ParseInt(of("origin_line"), 10, 64)
		counts = counts && err == nil && of("idx") == strconv.Itoa(last)
		_, _ = hash.Write(AppendHook(nil, of("subscription"), of("version"), of("origin_name"), of("origin_file"), line)) // a hash never fails
		return nil
	})
	end()
	for _, name := range slices.Sorted(maps.Keys(v.lists)) {
		v.Add(Problem{Kind: Removed, Table: Hooks.Name, Row: name, Text: fmt.Sprintf("the list of hooks %s, which the record %q has, was removed", name, v.lists[name])})
	}
	return err
}
