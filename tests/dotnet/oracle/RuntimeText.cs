// SPDX-License-Identifier: MIT
// Writes signatures as CoreCLR does (PrettyPrintSig): what full names of methods consist of.
using System.Collections.Immutable;
using System.Linq;
using System.Reflection.Metadata;

namespace Oracle
{
    internal sealed class RuntimeText : ISignatureTypeProvider<string, object>
    {
        private readonly MetadataReader reader;

        public RuntimeText(MetadataReader reader)
        {
            this.reader = reader;
        }

        public static string Escape(string name) =>
            string.Concat(name.Select(letter => ",[]&*+\\".Contains(letter) ? "\\" + letter : letter.ToString()));

        public string Method(MethodDefinition method, string assembly, string owner, string name)
        {
            MethodSignature<string> signature = method.DecodeSignature(this, null);
            return $"{(signature.Header.IsInstance ? "instance " : "")}{signature.ReturnType} [{assembly}] {owner}::{name}" +
                $"({string.Join(",", signature.ParameterTypes)})";
        }

        public string GetPrimitiveType(PrimitiveTypeCode code) => code switch
        {
            PrimitiveTypeCode.Void => "void",
            PrimitiveTypeCode.Boolean => "bool",
            PrimitiveTypeCode.Char => "char",
            PrimitiveTypeCode.SByte => "int8",
            PrimitiveTypeCode.Byte => "uint8",
            PrimitiveTypeCode.Int16 => "int16",
            PrimitiveTypeCode.UInt16 => "uint16",
            PrimitiveTypeCode.Int32 => "int32",
            PrimitiveTypeCode.UInt32 => "uint32",
            PrimitiveTypeCode.Int64 => "int64",
            PrimitiveTypeCode.UInt64 => "uint64",
            PrimitiveTypeCode.Single => "float32",
            PrimitiveTypeCode.Double => "float64",
            PrimitiveTypeCode.String => "string",
            PrimitiveTypeCode.TypedReference => "typedref",
            PrimitiveTypeCode.IntPtr => "native int",
            PrimitiveTypeCode.UIntPtr => "native uint",
            _ => "object",
        };

        public string GetTypeFromDefinition(MetadataReader _, TypeDefinitionHandle handle, byte kind)
        {
            TypeDefinition type = reader.GetTypeDefinition(handle);
            string name = reader.GetString(type.Name);
            return Word(kind) + (!type.GetDeclaringType().IsNil ? GetTypeFromDefinition(_, type.GetDeclaringType(), 0) + "/" + name
                : type.Namespace.IsNil ? name : reader.GetString(type.Namespace) + "." + name);
        }

        public string GetTypeFromReference(MetadataReader _, TypeReferenceHandle handle, byte kind)
        {
            TypeReference type = reader.GetTypeReference(handle);
            string name = type.Namespace.IsNil ? reader.GetString(type.Name) : reader.GetString(type.Namespace) + "." + reader.GetString(type.Name);
            if (type.ResolutionScope.Kind == HandleKind.TypeReference)
                return Word(kind) + GetTypeFromReference(_, (TypeReferenceHandle)type.ResolutionScope, 0) + "/" + name;
            string assembly = type.ResolutionScope.Kind == HandleKind.AssemblyReference
                ? "[" + reader.GetString(reader.GetAssemblyReference((AssemblyReferenceHandle)type.ResolutionScope).Name) + "]" : "";
            return Word(kind) + assembly + name;
        }

        private static string Word(byte kind) => kind == 0x11 ? "valuetype " : kind == 0x12 ? "class " : "";

        public string GetTypeFromSpecification(MetadataReader _, object context, TypeSpecificationHandle handle, byte kind) =>
            reader.GetTypeSpecification(handle).DecodeSignature(this, context);

        public string GetGenericInstantiation(string type, ImmutableArray<string> arguments) => $"{type}<{string.Join(",", arguments)}>";

        public string GetArrayType(string element, ArrayShape shape) =>
            element + (shape.Rank == 1 ? "[...]" : "[" + string.Join(",", Enumerable.Repeat("0...", shape.Rank)) + "]");

        public string GetSZArrayType(string element) => element + "[]";

        public string GetPointerType(string element) => element + "*";

        public string GetByReferenceType(string element) => element + "&";

        public string GetPinnedType(string element) => element + " pinned";

        public string GetModifiedType(string modifier, string type, bool required) => $"{type} {(required ? "modreq" : "modopt")}({Bare(modifier)})";

        private static string Bare(string type) => type.StartsWith("class ") ? type[6..] : type.StartsWith("valuetype ") ? type[10..] : type;

        public string GetGenericMethodParameter(object context, int index) => "!!" + index;

        public string GetGenericTypeParameter(object context, int index) => "!" + index;

        public string GetFunctionPointerType(MethodSignature<string> signature) =>
            $"method {signature.ReturnType} *({string.Join(",", signature.ParameterTypes)})";
    }
}
