import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { fieldError, query } from '../../api/client';
import { percent, time } from '../../app/format';
import { useMay } from '../../app/session';
import { Button } from '../../parts/forms/Button';
import { Form, TextField } from '../../parts/forms/Fields';
import { FormError } from '../../parts/forms/FormError';
import { Modal } from '../../parts/forms/Modal';
import { useToast } from '../../parts/Toasts';
import css from './Invoice.module.css';
import { ENGINE, type Invoice, type InvoiceLine } from './words';

/** One line: each field as it was read with its confidence, and what a person writes instead. */
export function EditLine({
  invoice,
  line,
  onClose,
}: {
  invoice: Invoice;
  line: InvoiceLine | undefined;
  onClose: () => void;
}) {
  return (
    <Modal title={line ? `Line ${line.line}` : ''} isOpen={line !== undefined} onClose={onClose} side>
      {line && <LineForm key={line.line} invoice={invoice} line={line} onClose={onClose} />}
    </Modal>
  );
}

const NUMBERS = ['quantity', 'unit_price', 'amount', 'tax'] as const;
const LABELS = {
  quantity: 'Quantity',
  unit_price: 'Unit price',
  amount: 'Amount before tax',
  tax: 'Tax',
} as const;
type NumberName = (typeof NUMBERS)[number];

/** The digits of a number without an exponent. */
const digits = (value: number | null) =>
  value === null ? '' : value.toLocaleString('en-US', { useGrouping: false, maximumFractionDigits: 12 });

function LineForm({ invoice, line, onClose }: { invoice: Invoice; line: InvoiceLine; onClose: () => void }) {
  const client = useQueryClient();
  const toast = useToast();
  const mayWrite = useMay()({ scope: 'billing:write' });
  const [description, setDescription] = useState(line.description);
  const [texts, setTexts] = useState<Record<NumberName, string>>({
    quantity: digits(line.quantity),
    unit_price: digits(line.unit_price),
    amount: digits(line.amount),
    tax: digits(line.tax),
  });
  const save = query.useMutation('patch', '/api/v1/reconciliation/invoices/{id}/lines/{line}', {
    onSuccess: async (now) => {
      client.setQueryData(
        ['get', '/api/v1/reconciliation/invoices/{id}', { params: { path: { id: invoice.id } } }],
        now,
      );
      await client.invalidateQueries({ queryKey: ['get', '/api/v1/reconciliation/invoices'] });
      toast(
        now.arithmetic_ok
          ? `Line ${line.line} is corrected. Every sum of the document agrees.`
          : `Line ${line.line} is corrected. Some sums of the document still disagree.`,
      );
      onClose();
    },
  });
  const changes = changesOf(line, description, texts);
  const errorOf = (field: string) => fieldError(save.error, field);
  const readAs = (
    field: { text: string; confidence: number; engine: keyof typeof ENGINE } | null | undefined,
  ) =>
    field
      ? `Read as “${field.text}” from the ${ENGINE[field.engine]}, ${percent(field.confidence, 0)} confidence.`
      : 'Not read from the document.';
  return (
    <Form
      onSubmit={() => {
        if (changes) save.mutate({ params: { path: { id: invoice.id, line: line.line } }, body: changes });
      }}
      actions={
        mayWrite ? (
          <>
            <Button kind="primary" type="submit" isPending={save.isPending} isDisabled={!changes}>
              {save.isPending ? 'Saving …' : 'Save the correction'}
            </Button>
            <Button onPress={onClose}>Cancel</Button>
          </>
        ) : (
          <Button onPress={onClose}>Close</Button>
        )
      }
    >
      <TextField
        label="Description"
        value={description}
        onChange={setDescription}
        isReadOnly={!mayWrite}
        help={readAs(line.extracted.description)}
        error={errorOf('description')}
      />
      <div className={css.two}>
        {NUMBERS.map((name) => (
          <TextField
            key={name}
            label={LABELS[name]}
            value={texts[name]}
            onChange={(text) => setTexts((before) => ({ ...before, [name]: text }))}
            inputMode="decimal"
            isReadOnly={!mayWrite}
            help={
              name === 'tax'
                ? 'As you write it; leave empty where it is unknown.'
                : readAs(line.extracted[name])
            }
            error={
              errorOf(name) ??
              (parsed(texts[name]) === undefined || (name === 'amount' && texts.amount.trim() === '')
                ? 'Write a number, for example 1234.50.'
                : undefined)
            }
          />
        ))}
      </div>
      {line.extracted.period_start && (
        <p className={css.muted}>
          Period {line.period_start} – {line.period_end}. {readAs(line.extracted.period_start)}
        </p>
      )}
      {line.corrected_at && (
        <p className={css.muted}>
          Corrected {time(line.corrected_at)} by {line.corrected_by}.
        </p>
      )}
      {mayWrite && (
        <p className={css.muted}>
          Write what the document shows. The reading is kept beside it, and all sums are checked again.
        </p>
      )}
      <FormError error={save.error} shown={['description', ...NUMBERS]} />
    </Form>
  );
}

/** The number, null for an empty text, undefined for anything else. Thousands may have commas. */
function parsed(text: string): number | null | undefined {
  const plain = text.trim().replaceAll(',', '');
  if (plain === '') return null;
  return /^-?[0-9]+(\.[0-9]+)?$|^-?\.[0-9]+$/.test(plain) ? Number(plain) : undefined;
}

/** Fields that differ from the line; undefined where none does or one is not a number. */
function changesOf(line: InvoiceLine, description: string, texts: Record<NumberName, string>) {
  const changes: { description?: string; amount?: number } & Partial<Record<NumberName, number | null>> = {};
  if (description.trim() !== line.description) changes.description = description.trim();
  for (const name of NUMBERS) {
    const value = parsed(texts[name]);
    if (value === undefined || (name === 'amount' && value === null)) return undefined;
    if (value !== line[name]) changes[name] = value as number;
  }
  return Object.keys(changes).length > 0 ? changes : undefined;
}
