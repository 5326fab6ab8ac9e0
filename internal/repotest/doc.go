// Package repotest contains the rules of the repository, as tests: allowed
// imports, documented packages, small files, names in the style guide, valid
// snippets and links in the docs, and a test for every kept promise. It has no
// code besides its tests.
package repotest
