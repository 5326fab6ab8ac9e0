package licenses

import "strings"

// phrases are the sentences that identify a licence. The first licence whose phrases are all in a text is the licence.
var phrases = []struct {
	id    string
	parts []string
}{
	{"Apache-2.0", []string{"apache license version 2.0"}},
	{"MPL-2.0", []string{"mozilla public license version 2.0"}},
	{"MPL-2.0", []string{"mozilla public license, version 2.0"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "may not be used to endorse"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "may be used to endorse"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "the above copyright notice and this permission notice"}},
	{"MIT-0", []string{"mit no attribution", "permission is hereby granted, free of charge, to any person obtaining a copy"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software", "provided that the above copyright notice"}},
	{"ISC", []string{"permission to use, copy, modify, and distribute this software", "provided that the above copyright notice"}},
	{"0BSD", []string{"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted."}},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}},
	{"CC0-1.0", []string{"cc0 1.0 universal"}},
	{"blessing", []string{"the author disclaims copyright to this source code"}},
	{"blessing", []string{"sqlite is public domain"}},
}

// identify returns the SPDX identifier of a licence text, or "".
func identify(text string) string {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, p := range phrases {
		all := true
		for _, part := range p.parts {
			all = all && strings.Contains(text, part)
		}
		if all {
			return p.id
		}
	}
	return ""
}
