/** The purpose of sealed bytes; another binding does not open them. */
export interface SealBinding {
  orgId: string;
  /** The owner within the organization, e.g. a connection's id. */
  subjectId: string;
  /** The kind of content, e.g. `billing-credentials`. */
  purpose: string;
}

/** Seals texts with the instance's key and opens them (platform/secretKeys.ts). */
export interface Sealer {
  seal(text: string, binding: SealBinding): { ciphertext: Buffer; keyId: string };
  /** Undefined: no available key opens the bytes, or the binding differs. */
  open(sealed: Buffer, binding: SealBinding): string | undefined;
}
