import { type KeyboardEvent, memo, useEffect, useRef } from 'react';
import { providerName } from '../../../app/providers';
import { CellMark } from './CellMark';
import { type Bucket, cellLabel, type Grid, type Row } from './cells';
import css from './Gaps.module.css';

const ROW_HEIGHT = 28;
const AXIS_HEIGHT = 22;

/**
 * Rows of models, columns of days. An ARIA grid with one tab stop: arrows move, Home and End go to the ends of the row (with
 * Ctrl of the grid), Enter opens. The focus moves in the document alone, so that no cell renders again.
 */
export const Heatmap = memo(function Heatmap({
  grid,
  cellWidth,
  startKey,
  onOpen,
}: {
  grid: Grid;
  cellWidth: number;
  /** `row key|column` of the cell that has the tab stop first; by default the newest flagged one. */
  startKey: string;
  onOpen: (row: Row, column: string, bucket: Bucket) => void;
}) {
  const body = useRef<HTMLDivElement>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const { columns, rows, largest } = grid;
  const width = columns.length * cellWidth;
  const start = startOf(grid, startKey);

  // The newest day is at the right.
  useEffect(() => {
    if (scroll.current && width > 0) scroll.current.scrollLeft = scroll.current.scrollWidth;
  }, [width]);

  const cellAt = (row: number, column: number) =>
    body.current?.querySelector<SVGGElement>(`[data-at="${row}:${column}"]`);
  const positionOf = (target: EventTarget | null) => {
    const text = (target as Element | null)?.closest<SVGGElement>('[data-at]')?.dataset.at;
    if (!text) return undefined;
    const [row = 0, column = 0] = text.split(':').map(Number);
    return { row, column };
  };
  const focus = (row: number, column: number) => {
    const next = cellAt(
      Math.max(0, Math.min(rows.length - 1, row)),
      Math.max(0, Math.min(columns.length - 1, column)),
    );
    if (!next) return;
    for (const one of body.current?.querySelectorAll('[data-at][tabindex="0"]') ?? [])
      one.setAttribute('tabindex', '-1');
    next.setAttribute('tabindex', '0');
    next.focus();
    next.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
  const open = (at: { row: number; column: number }) => {
    const row = rows[at.row];
    const column = columns[at.column];
    const bucket = column === undefined ? undefined : row?.cells.get(column);
    if (row && column !== undefined && bucket) onOpen(row, column, bucket);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const at = positionOf(event.target);
    if (!at) return;
    const { row, column } = at;
    const isWhole = event.ctrlKey || event.metaKey;
    if (event.key === 'ArrowRight') focus(row, column + 1);
    else if (event.key === 'ArrowLeft') focus(row, column - 1);
    else if (event.key === 'ArrowDown') focus(row + 1, column);
    else if (event.key === 'ArrowUp') focus(row - 1, column);
    else if (event.key === 'Home') focus(isWhole ? 0 : row, 0);
    else if (event.key === 'End') focus(isWhole ? rows.length - 1 : row, columns.length - 1);
    else if (event.key === 'PageDown') focus(rows.length - 1, column);
    else if (event.key === 'PageUp') focus(0, column);
    else if (event.key === 'Enter' || event.key === ' ') open(at);
    else return;
    event.preventDefault();
  };
  return (
    <div className={css.frame}>
      <div className={css.labels} aria-hidden="true">
        <div className={css.axis} />
        {rows.map((row) => (
          <div
            key={row.key}
            className={css.label}
            title={`${providerName(row.provider)} ${row.model} ${row.account}`}
          >
            {row.model} <span className={css.provider}>{providerName(row.provider)}</span>
          </div>
        ))}
      </div>
      <div className={css.scroll} ref={scroll} data-days>
        {/* biome-ignore lint/a11y/useSemanticElements: cells of a drawing cannot be cells of a table */}
        <div
          ref={body}
          role="grid"
          tabIndex={-1}
          aria-label="Differences between bill and calls by model and day"
          aria-rowcount={rows.length}
          aria-colcount={columns.length}
          onKeyDown={onKeyDown}
          onClick={(event) => {
            const at = positionOf(event.target);
            if (!at) return;
            focus(at.row, at.column);
            open(at);
          }}
        >
          <svg className={css.svg} width={width} height={AXIS_HEIGHT} role="presentation">
            <Axis columns={columns} cellWidth={cellWidth} />
          </svg>
          {rows.map((row, rowAt) => (
            // biome-ignore lint/a11y/useSemanticElements: see above
            <div
              key={row.key}
              className={css.row}
              style={{ width, height: ROW_HEIGHT }}
              role="row"
              tabIndex={-1}
              aria-rowindex={rowAt + 1}
            >
              <svg className={css.svg} width={width} height={ROW_HEIGHT} role="presentation">
                {columns.map((column, columnAt) => {
                  const bucket = row.cells.get(column);
                  const x = columnAt * cellWidth;
                  const label = cellLabel(row, column, bucket);
                  return (
                    // biome-ignore lint/a11y/useSemanticElements: see above
                    <g
                      key={column}
                      role="gridcell"
                      className={css.cell}
                      data-at={`${rowAt}:${columnAt}`}
                      tabIndex={start === `${rowAt}:${columnAt}` ? 0 : -1}
                      aria-colindex={columnAt + 1}
                      aria-label={label}
                    >
                      <CellMark
                        bucket={bucket}
                        x={x}
                        y={0}
                        width={cellWidth}
                        height={ROW_HEIGHT}
                        largest={largest}
                      />
                      <rect
                        className={css.hit}
                        x={x + 1}
                        y={1}
                        width={cellWidth - 2}
                        height={ROW_HEIGHT - 2}
                        rx={2}
                      >
                        <title>{label}</title>
                      </rect>
                    </g>
                  );
                })}
              </svg>
            </div>
          ))}
        </div>
      </div>
    </div>
  );
});

function startOf({ rows, columns }: Grid, startKey: string): string {
  let flagged: string | undefined;
  for (const [rowAt, row] of rows.entries())
    for (const [columnAt, column] of columns.entries()) {
      if (`${row.key}|${column}` === startKey) return `${rowAt}:${columnAt}`;
      if (row.cells.get(column)?.flagged_gap) flagged = `${rowAt}:${columnAt}`;
    }
  return flagged ?? `0:${columns.length - 1}`;
}

/** Days below which a label needs this much room. */
const LABEL_WIDTH = 44;

export function Axis({ columns, cellWidth }: { columns: readonly string[]; cellWidth: number }) {
  const isHourly = (columns[0]?.length ?? 0) > 10;
  const step = isHourly ? 24 : Math.ceil(LABEL_WIDTH / cellWidth);
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a group of a drawing takes no focus
    <g aria-hidden="true">
      {columns.map((column, at) =>
        at % step === 0 && (columns.length - at) * cellWidth >= LABEL_WIDTH - 8 ? (
          <text key={column} className={css.tick} x={at * cellWidth + 1} y={14}>
            {column.slice(5, 10)}
          </text>
        ) : null,
      )}
    </g>
  );
}
