/** All advisory locks, defined in one place, because two with the same number would block each other. */

/** Locks of the whole installation. */
export const INSTALLATION_LOCKS = {
  /** One process migrates; the others wait and then find nothing to do. */
  migration: 7_241_188_301,
  /** One process changes prices at a time; the others wait and then find nothing left to do. */
  priceChange: 7_241_188_302,
  /** Shared by writers that encrypt and store, exclusive for a rotation that drops an old secret key. */
  secrets: 7_241_188_303,
  /** For processes that check whether an organization exists and create the first one. */
  firstOrganization: 7_241_188_304,
} as const;

/** Locks by name: the seeds of the name's hash separate the kinds. */
const SEEDS = {
  gapRunTurn: 5,
  providerAccount: 7,
  providerKeys: 8,
  auditCheckpoint: 14,
  idempotencyKey: 15,
  enforcementRules: 16,
  claimDrafts: 17,
  claimCredits: 18,
  /** For an organization's provider: ending imports, and new connections. */
  firstAccount: 19,
  /** For reading an organization's invoices. */
  invoiceExtractions: 20,
  /** For invoices of a provider with the same number. */
  invoiceNumber: 21,
  openRuns: 7_241_188_017,
} as const;

type LockKind = keyof typeof SEEDS;

/** SQL of the lock's number from the name, its first parameter. */
export const lockNumber = (kind: LockKind) => `hashtextextended($1, ${SEEDS[kind]})`;

interface Transaction {
  run(sql: string, values: readonly string[]): Promise<number>;
}

/** Waits for the lock of this name and holds it until the transaction ends. */
export async function lockByName(inside: Transaction, kind: LockKind, name: string): Promise<void> {
  await inside.run(`select pg_advisory_xact_lock(${lockNumber(kind)})`, [name]);
}

/** An encrypted value, and the id of the key that decrypts it. */
export interface Sealed {
  ciphertext: Buffer;
  keyId: string;
}

/**
 * Encrypts under a shared lock: a rotation takes it exclusively, so that it drops an old key only while nothing is
 * encrypted with it.
 */
export async function sealUnderLock(inside: Transaction, seal: () => Sealed): Promise<Sealed> {
  await inside.run(`select pg_advisory_xact_lock_shared(${INSTALLATION_LOCKS.secrets})`, []);
  return seal();
}
