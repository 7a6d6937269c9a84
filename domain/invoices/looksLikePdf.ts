/** Readers accept bytes before the header, such as a mail's remains, up to here. */
export const PDF_MAGIC_WITHIN_BYTES = 1_024;

/** Whether the first bytes of a file are those of a PDF; says nothing about the rest. */
export function looksLikePdf(firstBytes: Uint8Array): boolean {
  return new TextDecoder('latin1').decode(firstBytes.subarray(0, PDF_MAGIC_WITHIN_BYTES)).includes('%PDF-');
}
