import { errorText, isProblem } from '../../api/client';
import { Notice } from '../States';

/** The sentence of a failed request at the end of a form, unless the fields show all of it. */
export function FormError({ error, shown = [] }: { error: unknown; shown?: readonly string[] }) {
  if (error === undefined || error === null) return null;
  const faults = isProblem(error) ? (error.errors ?? []) : [];
  if (faults.length > 0 && faults.every(({ field }) => shown.includes(field))) return null;
  return (
    <Notice kind="bad">
      {errorText(error)}
      {isProblem(error) && error.status >= 500 && error.request_id && (
        <>
          {' '}
          Request <code>{error.request_id}</code>
        </>
      )}
    </Notice>
  );
}
