package licenses

import (
	"fmt"
	"strings"
)

// Table returns the modules as a table in Markdown.
func Table(modules []Module) string {
	var b strings.Builder
	b.WriteString("| module | version | licence |\n|---|---|---|\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Path, m.Version, m.License)
	}
	return b.String()
}

// Texts returns the licence texts of the modules, as they must be handed on with the program. A text that several modules share
// appears once.
func Texts(modules []Module) string {
	var b strings.Builder
	b.WriteString("Belay contains software that others wrote. This file has their licences and notices.\n")
	owners := map[string][]string{}
	var order []string
	for _, m := range modules {
		for _, f := range m.Files {
			text := strings.TrimSpace(strings.ReplaceAll(f.Text, "\r\n", "\n"))
			if owners[text] == nil {
				order = append(order, text)
			}
			owners[text] = append(owners[text], strings.TrimSpace(m.Path+" "+m.Version)+" ("+f.Name+")")
		}
	}
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 100), strings.Join(owners[text], "\n"), text)
	}
	return b.String()
}
