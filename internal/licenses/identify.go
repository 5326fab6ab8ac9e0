package licenses

import (
	"slices"
	"strings"
)

// phrases are the sentences that identify a licence. A text may have several licences. A licence is not meant where a text has only
// the part of it that another licence has too: then that one is meant.
var phrases = []struct {
	id    string
	part  string   // the text has this
	with  []string // the text has one of these too, if there are any
	never []string // the text has none of these
}{
	{id: "Apache-2.0", part: "apache license version 2.0"},
	{id: "Apache-2.0", part: "licensed under the apache license, version 2.0"},
	{id: "MPL-2.0", part: "mozilla public license version 2.0"},
	{id: "MPL-2.0", part: "mozilla public license, version 2.0"},
	{id: "BSD-3-Clause", part: bsd, with: third},
	{id: "BSD-2-Clause", part: bsd, never: third},
	{id: "MIT", part: mit, with: []string{"the above copyright notice and this permission notice"}},
	{id: "MIT-0", part: mit, with: []string{"mit no attribution"}},
	{id: "ISC", part: "permission to use, copy, modify, and/or distribute this software", with: []string{"provided that the above copyright notice"}},
	{id: "ISC", part: "permission to use, copy, modify, and distribute this software", with: []string{"provided that the above copyright notice"}},
	{id: "0BSD", part: "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted."},
	{id: "Unlicense", part: "this is free and unencumbered software released into the public domain"},
	{id: "CC0-1.0", part: "cc0 1.0 universal"},
	{id: "blessing", part: "the author disclaims copyright to this source code"},
	{id: "blessing", part: "sqlite is public domain"},
}

const (
	bsd = "redistribution and use in source and binary forms"
	mit = "permission is hereby granted, free of charge, to any person obtaining a copy"
)

// third is how the third condition of the licence begins.
var third = []string{"neither the name", "may not be used to endorse", "may be used to endorse"}

// identify returns the SPDX identifiers of the licences in a text.
func identify(text string) []string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	in := func(part string) bool { return strings.Contains(text, part) }
	var found []string
	for _, p := range phrases {
		if in(p.part) && (len(p.with) == 0 || slices.ContainsFunc(p.with, in)) && !slices.ContainsFunc(p.never, in) && !slices.Contains(found, p.id) {
			found = append(found, p.id)
		}
	}
	return found
}
