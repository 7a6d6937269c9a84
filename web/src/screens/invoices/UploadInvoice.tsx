import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { api, toFormData } from '../../api/client';
import { FileDrop } from '../../parts/forms/FileDrop';
import { Modal } from '../../parts/forms/Modal';
import { UploadForm } from '../../parts/forms/UploadForm';
import { useToast } from '../../parts/Toasts';

/** Takes the PDF of an invoice by drop or button, then asks who issued it. */
export function UploadInvoice() {
  const [file, setFile] = useState<File>();
  return (
    <>
      <FileDrop
        label="or drop the PDF of an invoice here"
        button="Upload an invoice"
        accept={['application/pdf']}
        onFile={setFile}
      />
      <Modal title="Upload an invoice" isOpen={file !== undefined} onClose={() => setFile(undefined)}>
        {file && <InvoiceForm file={file} onClose={() => setFile(undefined)} />}
      </Modal>
    </>
  );
}

function InvoiceForm({ file, onClose }: { file: File; onClose: () => void }) {
  const client = useQueryClient();
  const toast = useToast();
  const [, go] = useLocation();
  return (
    <UploadForm
      file={file}
      onClose={onClose}
      words={{
        provider: 'Issued by',
        accountHelp: 'Needed where the document does not name the account as bills do.',
        rate: 'US dollars for one unit of the invoice’s currency (optional)',
        rateHelp: 'Needed for an invoice in another currency, for example 1.0842.',
      }}
      send={async (body) => {
        const answer = await api.POST('/api/v1/reconciliation/invoice', {
          body,
          bodySerializer: toFormData,
        });
        if (answer.error) return answer.error;
        await client.invalidateQueries({ queryKey: ['get', '/api/v1/reconciliation/invoices'] });
        toast(
          answer.data.duplicate
            ? 'The same file was uploaded before: this is that invoice.'
            : 'The invoice is uploaded and is being read.',
        );
        go(`/invoices/${answer.data.invoice_id}`);
      }}
    />
  );
}
