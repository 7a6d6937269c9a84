import { parseFxRate } from '../../domain/billing/pageRow.js';
import { invalidField } from '../../domain/errors.js';
import { findProvider, PROVIDERS, type Provider } from '../../domain/providers.js';
import type { ReceivedFile } from './multipart.js';

const ACCOUNT_CHARS_MAX = 256;

/** Fields of the upload form beside the file. */
interface UploadForm {
  provider: Provider;
  account: string | null;
  /** US dollars for one unit of the file's currency, as a decimal text. */
  fxRate: string | null;
}

/** Validates the form's fields; they can follow the file. Errors: invalid_body, missing_parameter. */
export function readUploadForm(
  { fields }: ReceivedFile,
  { known, issued }: { known: readonly string[]; issued: string },
): UploadForm {
  const unknown = Object.keys(fields).find((name) => !known.includes(name));
  if (unknown !== undefined) throw invalid(unknown, 'is not known here; leave it out');
  const { provider, account, fx_rate: fxRate } = fields;
  if (provider === undefined)
    throw invalidField('body', 'provider', `is required: who issued ${issued}`, 'missing_parameter');
  const found = findProvider(provider);
  if (!found) throw invalid('provider', `must be one of ${PROVIDERS.join(', ')}`);
  if (account !== undefined && !/^[\x21-\x7e][\x20-\x7e]*$/.test(account) && account !== '')
    throw invalid('account', 'must be printable text');
  if ((account ?? '').length > ACCOUNT_CHARS_MAX)
    throw invalid('account', `must have at most ${ACCOUNT_CHARS_MAX} characters`);
  if (fxRate !== undefined && fxRate !== '' && !parseFxRate(fxRate))
    throw invalid('fx_rate', 'must be a decimal number above 0: US dollars for one unit of the currency');
  return { provider: found, account: account?.trim() || null, fxRate: fxRate || null };
}

function invalid(field: string, message: string) {
  return invalidField('body', field, message, 'invalid_body');
}
