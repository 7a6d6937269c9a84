import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { query } from '../../api/client';
import { useMay } from '../../app/session';
import { Button, DownloadLink } from '../../parts/forms/Button';
import { Confirm } from '../../parts/forms/Confirm';
import { Select, TextField } from '../../parts/forms/Fields';
import { useToast } from '../../parts/Toasts';
import { type Invoice, isWorking } from './words';

const PATH = '/api/v1/reconciliation/invoices/{id}';

/** The actions of an invoice. The API would refuse to read or confirm one while it is being read. */
export function InvoiceActions({ invoice }: { invoice: Invoice }) {
  const mayWrite = useMay()({ scope: 'billing:write' });
  const [dialog, setDialog] = useState<'confirm' | 'retry' | 'delete'>();
  const close = () => setDialog(undefined);
  const isIdle = !isWorking(invoice);
  return (
    <>
      <DownloadLink href={invoice.file_url}>Original file</DownloadLink>
      {mayWrite && isIdle && <Button onPress={() => setDialog('retry')}>Read again</Button>}
      {mayWrite && (
        <Button kind="danger" onPress={() => setDialog('delete')}>
          Delete
        </Button>
      )}
      {mayWrite && invoice.status === 'needs_review' && !invoice.confirmed && (
        <Button kind="primary" onPress={() => setDialog('confirm')}>
          The document is wrong
        </Button>
      )}
      {dialog === 'confirm' && <ConfirmWrong invoice={invoice} onClose={close} />}
      {dialog === 'retry' && <Retry invoice={invoice} onClose={close} />}
      {dialog === 'delete' && <Delete invoice={invoice} onClose={close} />}
    </>
  );
}

/** Asks the API again for this invoice and the list. */
function useRefresh(): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await Promise.all([
      client.invalidateQueries({ queryKey: ['get', PATH] }),
      client.invalidateQueries({ queryKey: ['get', '/api/v1/reconciliation/invoices'] }),
    ]);
  };
}

function ConfirmWrong({ invoice, onClose }: { invoice: Invoice; onClose: () => void }) {
  const [note, setNote] = useState('');
  const refresh = useRefresh();
  const toast = useToast();
  const confirm = query.useMutation('post', `${PATH}/confirm`, {
    onSuccess: async () => {
      await refresh();
      toast('Confirmed. The invoice is compared with the bill now.');
      onClose();
    },
    onError: () => void refresh(),
  });
  return (
    <Confirm
      title="The document itself is wrong"
      action="Confirm"
      isOpen
      isBusy={confirm.isPending}
      error={confirm.error}
      onClose={onClose}
      onConfirm={() =>
        confirm.mutate({ params: { path: { id: invoice.id } }, body: { note: note.trim() || null } })
      }
    >
      <p>
        Confirm this when every line is read right and the provider’s document has the error. The invoice is
        then compared with the bill all the same, and its contradictions become findings.
      </p>
      <TextField label="Note (optional)" value={note} onChange={setNote} lines={3} maxLength={2_000} />
    </Confirm>
  );
}

type Engine = 'text' | 'tesseract' | 'document_ai';

function Retry({ invoice, onClose }: { invoice: Invoice; onClose: () => void }) {
  const [engine, setEngine] = useState<Engine | ''>('');
  const refresh = useRefresh();
  const toast = useToast();
  const retry = query.useMutation('post', `${PATH}/retry`, {
    onSuccess: async (run) => {
      await refresh();
      toast(run.existing ? 'The invoice is being read already.' : 'The invoice is being read again.');
      onClose();
    },
  });
  return (
    <Confirm
      title="Read the invoice again"
      action="Read again"
      isOpen
      isBusy={retry.isPending}
      error={retry.error}
      onClose={onClose}
      onConfirm={() =>
        retry.mutate({
          params: { path: { id: invoice.id } },
          body: engine === '' ? {} : { engines: [engine] },
        })
      }
    >
      <p>
        What is read replaces what was read before, with its corrections and its confirmation. Where the file
        cannot be read, the invoice stays as it is.
      </p>
      <Select
        label="Read by"
        value={engine}
        onChange={setEngine}
        options={[
          { value: '', label: 'As the settings say' },
          { value: 'text', label: 'Text of the PDF' },
          { value: 'tesseract', label: 'OCR (Tesseract)' },
          { value: 'document_ai', label: 'OCR (Document AI)' },
        ]}
      />
    </Confirm>
  );
}

function Delete({ invoice, onClose }: { invoice: Invoice; onClose: () => void }) {
  const [, go] = useLocation();
  const client = useQueryClient();
  const toast = useToast();
  const remove = query.useMutation('delete', PATH, {
    onSuccess: async () => {
      toast('The invoice is deleted.');
      go('/invoices');
      await client.invalidateQueries({ queryKey: ['get', '/api/v1/reconciliation/invoices'] });
    },
  });
  return (
    <Confirm
      title="Delete the invoice"
      action="Delete the invoice"
      isDanger
      isOpen
      isBusy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { path: { id: invoice.id } } })}
    >
      <p>
        The file of {invoice.number ?? invoice.filename}, its lines, and its findings are removed. An invoice
        that a claim cites cannot be deleted.
      </p>
    </Confirm>
  );
}
