package skill

import (
	"math/bits"
	"slices"
)

// An index finds which of many texts occur in another text, in one pass. For each text,
// the index stores a few adjacent bytes: those that the fewest other texts contain. A
// pass checks at every byte whether the last few bytes are stored. In most cases a small
// filter shows that they are not. Otherwise the pass compares the texts with these bytes.
// An index is fast to build, so it is simply rebuilt when a file changes.
type index struct {
	texts  []string
	levels []level
}

// widths are the possible numbers of stored bytes. The largest one that fits the text is
// used.
var widths = [...]int{8, 4, 2, 1}

// level is the part of an index for all texts with the same width.
type level struct {
	width   int
	shift   uint // how many bits of the last 8 bytes to ignore
	filter  []uint64
	heads   []int32 // for each hash the first entry, or -1
	entries []entryOf
}

// entryOf is a text in a level.
type entryOf struct {
	bytes  uint64 // the stored bytes
	end    int32  // where these bytes end in the text
	text   int32  // the index in index.texts
	behind int32  // the next entry with the same hash, or -1
}

// newIndex makes an index of texts. No text may be empty.
func newIndex(texts []string) *index {
	x := &index{texts: texts}
	most := len(widths)
	byWidth := make([][]int32, most)
	for i, t := range texts {
		w := slices.IndexFunc(widths[:], func(width int) bool { return len(t) >= width })
		byWidth[w] = append(byWidth[w], int32(i))
	}
	for w, members := range byWidth {
		if len(members) > 0 {
			x.levels = append(x.levels, newLevel(widths[w], texts, members))
		}
	}
	return x
}

func newLevel(width int, texts []string, members []int32) level {
	size := 1 << max(bits.Len(uint(len(members)))+1, 6)
	l := level{width: width, shift: uint(64 - 8*width), heads: make([]int32, size), filter: make([]uint64, size/8)}
	for i := range l.heads {
		l.heads[i] = -1
	}
	shared := make([]uint16, 1<<16) // for each hash, how many texts have bytes with that hash
	for _, m := range members {
		l.grams(texts[m], func(gram uint64, _ int) {
			if n := &shared[hash(gram)>>48]; *n < 1<<16-1 {
				*n++
			}
		})
	}
	for _, m := range members {
		e, fewest := entryOf{text: m}, 1<<16
		l.grams(texts[m], func(gram uint64, end int) {
			if n := int(shared[hash(gram)>>48]); n < fewest {
				fewest, e.bytes, e.end = n, gram, int32(end)
			}
		})
		h := hash(e.bytes)
		l.filter[l.bit(h)>>6] |= 1 << (l.bit(h) & 63)
		head := &l.heads[l.slot(h)]
		e.behind, *head = *head, int32(len(l.entries))
		l.entries = append(l.entries, e)
	}
	return l
}

// grams calls a function for each sequence of l.width adjacent bytes of a text.
func (l *level) grams(text string, tell func(gram uint64, end int)) {
	var last uint64
	for i := range len(text) {
		last = last>>8 | uint64(text[i])<<56
		if i+1 >= l.width {
			tell(last>>l.shift, i+1)
		}
	}
}

func hash(gram uint64) uint64 { return (gram ^ gram>>29) * 0x9e3779b97f4a7c15 }

func (l *level) slot(h uint64) uint64 { return h >> 32 & uint64(len(l.heads)-1) }

// bit returns the position of a hash in the filter.
func (l *level) bit(h uint64) uint64 { return h >> 20 & uint64(len(l.filter)*64-1) }

// find appends the indexes of the stored texts that occur in the given bytes. It may
// append an index more than once.
func (x *index) find(found []int32, in []byte) []int32 {
	for i := range x.levels {
		found = x.levels[i].find(found, x.texts, in)
	}
	return found
}

func (l *level) find(found []int32, texts []string, in []byte) []int32 {
	var last uint64
	mask, filter := uint64(len(l.filter)*64-1), l.filter
	for i, c := range in {
		last = last>>8 | uint64(c)<<56
		h := hash(last >> l.shift)
		if b := h >> 20 & mask; filter[b>>6]&(1<<(b&63)) == 0 || i+1 < l.width {
			continue
		}
		for e := l.heads[l.slot(h)]; e >= 0; e = l.entries[e].behind {
			entry := &l.entries[e]
			if start := i + 1 - int(entry.end); entry.bytes == last>>l.shift && start >= 0 && hasPrefix(in[start:], texts[entry.text]) {
				if n := len(found); n == 0 || found[n-1] != entry.text {
					found = append(found, entry.text)
				}
			}
		}
	}
	return found
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}
