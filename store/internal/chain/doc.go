// Package chain makes the records of a store evident: each transaction that writes runs,
// approvals or grants adds an entry with the hashes of the rows, and each entry has a hash
// over itself and the entry before it. Verify compares the tables with the entries. The
// design is in docs/design/audit.md.
//
// Package chain has what both SQL stores do in the same way. store/sqlite hashes rows in
// this program. store/postgres lets the server hash them: the texts are the same.
package chain
