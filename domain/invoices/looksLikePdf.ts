/** PDF readers accept this many foreign bytes, such as a mail header, before the PDF header. */
export const PDF_MAGIC_WITHIN_BYTES = 1_024;

/** Checks only the first bytes of a file for the PDF header. */
export function looksLikePdf(firstBytes: Uint8Array): boolean {
  return new TextDecoder('latin1').decode(firstBytes.subarray(0, PDF_MAGIC_WITHIN_BYTES)).includes('%PDF-');
}
