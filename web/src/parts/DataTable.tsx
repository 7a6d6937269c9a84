import { type KeyboardEvent, type ReactNode, useRef } from 'react';
import css from './DataTable.module.css';
import { DownloadLink } from './forms/Button';

/** One column. A column of numbers is right aligned and may have a foot, which must equal the sum of its rows. */
export interface Column<Row> {
  id: string;
  head: ReactNode;
  cell: (row: Row) => ReactNode;
  isNumber?: boolean;
  foot?: ReactNode;
  /** A wide text wraps instead of pushing the table. */
  isWide?: boolean;
}

/**
 * A table of rows with an optional foot and a CSV of the same rows. j and k (or the arrows) move between rows, Enter opens
 * one. On narrow screens the table scrolls within its own frame.
 */
export function DataTable<Row>({
  caption,
  columns,
  rows,
  rowKey,
  onOpen,
  rowLabel,
  selectedKey,
  onActive,
  csv,
  more,
}: {
  caption: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  onOpen?: (row: Row) => void;
  /** Names the row for its button, for example "open claim of OpenAI". */
  rowLabel?: (row: Row) => string;
  selectedKey?: string;
  /** The row under the pointer or with the focus; undefined once none is. */
  onActive?: (row: Row | undefined) => void;
  csv?: string;
  more?: ReactNode;
}) {
  const body = useRef<HTMLTableSectionElement>(null);
  const hasFoot = columns.some((column) => column.foot !== undefined);
  const move = (event: KeyboardEvent) => {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!step || event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement)
      return;
    const buttons = [...(body.current?.querySelectorAll<HTMLElement>('[data-row-button]') ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    const next = buttons[Math.max(0, Math.min(buttons.length - 1, at + step))];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  return (
    <div className={css.frame}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by keyboard */}
      <section className={css.scroll} aria-label={caption} tabIndex={0} onKeyDown={move}>
        <table className={css.table}>
          <caption className="visually-hidden">{caption}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.id} scope="col" className={column.isNumber ? css.number : ''}>
                  {column.head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody ref={body}>
            {rows.map((row) => {
              const key = rowKey(row);
              return (
                <tr
                  key={key}
                  data-row={key}
                  className={key === selectedKey ? css.selected : ''}
                  onPointerEnter={onActive && (() => onActive(row))}
                  onPointerLeave={onActive && (() => onActive(undefined))}
                  onFocus={onActive && (() => onActive(row))}
                  onBlur={onActive && (() => onActive(undefined))}
                >
                  {columns.map((column, at) => (
                    <td
                      key={column.id}
                      className={`${column.isNumber ? css.number : ''} ${column.isWide ? css.wide : ''}`}
                    >
                      {at === 0 && onOpen ? (
                        <RowButton label={rowLabel?.(row)} onClick={() => onOpen(row)}>
                          {column.cell(row)}
                        </RowButton>
                      ) : (
                        column.cell(row)
                      )}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
          {hasFoot && (
            <tfoot>
              <tr>
                {columns.map((column) => (
                  <td key={column.id} className={column.isNumber ? css.number : ''}>
                    {column.foot}
                  </td>
                ))}
              </tr>
            </tfoot>
          )}
        </table>
      </section>
      {(csv || more) && (
        <footer className={css.below}>
          {more}
          {csv && <DownloadLink href={csv}>CSV</DownloadLink>}
        </footer>
      )}
    </div>
  );
}

/** A button in a cell that opens the row; the keys of `DataTable` move between these. */
export function RowButton({
  label,
  onClick,
  children,
}: {
  /** For screen readers, instead of the text. */
  label?: string | undefined;
  onClick: () => void;
  children: ReactNode;
}) {
  return (
    <button type="button" data-row-button className={css.open} aria-label={label} onClick={onClick}>
      {children}
    </button>
  );
}
