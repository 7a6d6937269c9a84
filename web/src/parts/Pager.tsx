import { useFilter } from '../app/filters';
import { count } from '../app/format';
import { Button } from './forms/Button';

/** Rows that one page of a list has. */
export const PAGE_ROWS = 50;

/** The position of a list that is paged by offset; it lives in the URL. */
export function useOffset(): number {
  const [offset] = useFilter<string>('offset', '0');
  return Number(offset) || 0;
}

/** Moves through a list that is paged by offset. A list with one page has no buttons. */
export function Pager({ page }: { page: { count: number; offset: number; has_more: boolean } }) {
  const [, setOffset] = useFilter<string>('offset', '0');
  const { offset } = page;
  return (
    <>
      <span style={{ marginRight: 'auto', color: 'var(--muted)' }}>
        {page.count === 0 ? 'No rows' : `Rows ${count(offset + 1)}–${count(offset + page.count)}`}
        {!page.has_more && offset === 0 ? '' : page.has_more ? ', more follow' : ', the last ones'}
      </span>
      {offset > 0 && (
        <Button onPress={() => setOffset(String(Math.max(0, offset - PAGE_ROWS)))}>Previous</Button>
      )}
      {page.has_more && <Button onPress={() => setOffset(String(offset + PAGE_ROWS))}>Next</Button>}
    </>
  );
}
