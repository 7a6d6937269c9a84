import { useState } from 'react';
import { Button } from '../../parts/forms/Button';
import { Notice } from '../../parts/States';
import css from './Invoice.module.css';
import type { Invoice, InvoiceLine } from './words';

/** Pixels of a page image for one point of the page: the API draws at 110 pixels an inch. */
const PIXELS_PER_POINT = 110 / 72;

type Box = NonNullable<InvoiceLine['extracted']['amount']['box']>;

/** Boxes of a line's fields; fields that share their words share a box. */
export function boxesOf({ extracted }: InvoiceLine): Box[] {
  const boxes = Object.values(extracted).flatMap((field) => field?.box ?? []);
  return [...new Map(boxes.map((box) => [`${box.page} ${box.x} ${box.y}`, box])).values()];
}

/** The image of one page with a box around each line; the box of the active line is marked. */
export function PageView({
  invoice,
  page,
  onPage,
  active,
  onActive,
  onChoose,
}: {
  invoice: Invoice;
  page: number;
  onPage: (page: number) => void;
  active: number | undefined;
  onActive: (line: number | undefined) => void;
  onChoose: (line: number) => void;
}) {
  const [size, setSize] = useState<{ width: number; height: number }>();
  const [failed, setFailed] = useState<number>();
  const pages = invoice.pages ?? 1;
  const place = (box: Omit<Box, 'page'>, margin = 0) => {
    if (!size) return { display: 'none' };
    const x = (pixels: number) => `${((pixels * PIXELS_PER_POINT) / size.width) * 100}%`;
    const y = (pixels: number) => `${((pixels * PIXELS_PER_POINT) / size.height) * 100}%`;
    return {
      left: x(box.x - margin),
      top: y(box.y - margin),
      width: x(box.width + 2 * margin),
      height: y(box.height + 2 * margin),
    };
  };
  return (
    <section className={css.document} aria-label="The document">
      <div className={css.pages}>
        <span>
          Page {page} of {pages}
        </span>
        {pages > 1 && (
          <span>
            <Button isDisabled={page <= 1} aria-label="Previous page" onPress={() => onPage(page - 1)}>
              ‹
            </Button>{' '}
            <Button isDisabled={page >= pages} aria-label="Next page" onPress={() => onPage(page + 1)}>
              ›
            </Button>
          </span>
        )}
      </div>
      {failed === page ? (
        <Notice kind="warn">
          The image of this page cannot be drawn now. The original file is still available.
        </Notice>
      ) : (
        <div className={css.sheet}>
          <img
            key={page}
            src={`/api/v1/reconciliation/invoices/${invoice.id}/pages/${page}.png`}
            alt={`Page ${page} of invoice ${invoice.number ?? invoice.filename}`}
            onLoad={({ currentTarget: image }) =>
              setSize({ width: image.naturalWidth, height: image.naturalHeight })
            }
            onError={() => setFailed(page)}
          />
          {invoice.lines.map((line) => {
            const boxes = boxesOf(line).filter((box) => box.page === page);
            if (boxes.length === 0) return null;
            const isActive = line.line === active;
            return (
              <span key={line.line}>
                {/* The table beside the page has the same lines for the keyboard. */}
                <button
                  type="button"
                  tabIndex={-1}
                  aria-label={`Line ${line.line}: ${line.description}`}
                  className={`${css.box} ${isActive ? css.active : ''}`}
                  style={place(unionOf(boxes), 2.5)}
                  onPointerEnter={() => onActive(line.line)}
                  onPointerLeave={() => onActive(undefined)}
                  onClick={() => onChoose(line.line)}
                />
                {isActive &&
                  boxes.map((box) => (
                    <span key={`${box.x} ${box.y}`} className={css.word} style={place(box, 0.5)} />
                  ))}
              </span>
            );
          })}
        </div>
      )}
    </section>
  );
}

function unionOf(boxes: readonly Box[]): Omit<Box, 'page'> {
  const x = Math.min(...boxes.map((box) => box.x));
  const y = Math.min(...boxes.map((box) => box.y));
  return {
    x,
    y,
    width: Math.max(...boxes.map((box) => box.x + box.width)) - x,
    height: Math.max(...boxes.map((box) => box.y + box.height)) - y,
  };
}
