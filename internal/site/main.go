// Command site makes static pages from docs/: one page for each Markdown page, with a search that works without a server and
// without a network.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("out", "site", "where the pages go; they replace what is there")
	flag.Parse()
	if err := build(".", *out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}
