import { publicId } from '../../../domain/ids.js';
import { CLAIMS_PATH } from '../claims/wire.js';

export const EVIDENCE_PATH = `${CLAIMS_PATH}/{id}/evidence`;

/** What a file of a claim's evidence is called where it is saved. */
export const attached = (id: string, extension: string): Record<string, string> => ({
  'Content-Disposition': `attachment; filename="${publicId('clm', id)}-evidence.${extension}"`,
});
