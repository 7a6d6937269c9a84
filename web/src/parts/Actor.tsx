import { query } from '../api/client';
import { useMay } from '../app/session';

/** The name of the key that acted; its id where the name is unknown to the reader. A run acts for the service. */
export function Actor({ id }: { id: string | null | undefined }) {
  const may = useMay();
  const keys = query.useQuery(
    'get',
    '/api/v1/keys',
    { params: { query: { limit: 200 } } },
    { enabled: may({ scope: 'keys:admin' }) && id?.startsWith('key_') === true, staleTime: 300_000 },
  );
  if (!id) return '–';
  const name = keys.data?.keys.find((key) => key.id === id)?.name;
  if (name) return <span title={id}>{name}</span>;
  if (id.startsWith('run_')) return <span title={id}>a gap run</span>;
  return <code>{id}</code>;
}
