// Package repotest contains the rules of the repository, as tests. The rules are about
// imports, package comments, file sizes, names, snippets and links in the docs, and a test
// for every kept promise. The package contains only tests.
package repotest
