// Package repotest holds the rules of the repository, as tests: imports go one
// way, packages are documented, files stay small, names follow the style, the
// snippets and links of the docs are true, every promise that is kept is cited
// by a test. It has no code besides its tests.
package repotest
